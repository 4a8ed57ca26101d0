"""Reads a job from a manifest file, with an answer a user can act on for everything that can be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dtjob.api.job import KIND, Job
from dtjob.cli.bad_input import BadInput
from dtjob.cli.generated_name import of_the_begin, with_a_name
from dtjob.cli.manifest_yaml import documents
from dtjob.crd.answers.problems import problems, to_job

LARGEST_BYTES = 1536 * 1024
"""What an API server takes for one object (etcd's limit for one request)."""


def read_job(path: Path) -> Job:
    """The job in this file. Raises BadInput with a line for each thing that is wrong."""
    written = read_manifest(path)
    manifest = with_a_name(written)
    found = problems(manifest)
    if manifest is not written:
        found = [of_the_begin(problem) for problem in found]
    if found:
        raise BadInput(*(f"{path}: {problem}" for problem in found))
    return to_job(manifest)


def read_manifest(path: Path) -> Any:
    """The one document in this file, not checked further. Raises BadInput.

    Of several documents the one job: a file for `kubectl apply` may hold its volume's claim too.
    """
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise BadInput(f"{path}: larger than {LARGEST_BYTES // 1024} KiB, which no API server would take")
        text = path.read_text()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not a text file in UTF-8; give a job's YAML or JSON") from None
    try:
        found = [document for document in documents(text) if document is not None]
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: is not YAML: {_one_line(error)}") from None
    except ValueError as error:  # a tag such as !!timestamp before what is none
        raise BadInput(f"{path}: is not YAML: {error}") from None
    except RecursionError:
        raise BadInput(f"{path}: is not a manifest: nested too deeply") from None
    if not found:
        raise BadInput(f"{path}: is empty; give one {KIND}")
    if len(found) == 1:
        return found[0]
    jobs = [document for document in found if isinstance(document, dict) and document.get("kind") == KIND]
    if len(jobs) != 1:
        raise BadInput(f"{path}: holds {len(found)} documents, {len(jobs)} of them a {KIND}; give a file with one")
    return jobs[0]


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
