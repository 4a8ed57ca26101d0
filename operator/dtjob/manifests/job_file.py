# SPDX-License-Identifier: Apache-2.0
"""Reads a job from a manifest file, with an answer a user can act on for everything that can be wrong with it."""

from pathlib import Path
from typing import Any

from dtjob.api.job import KIND, Job, Metadata
from dtjob.bad_input import BadInput
from dtjob.crd.answers.field_errors import Problem
from dtjob.crd.answers.problems import problems, to_job
from dtjob.crd.rule import Value
from dtjob.manifests.stream import parsed, read_file, text_of

LARGEST_BYTES = 1536 * 1024
"""What an API server takes for one object (etcd's limit for one request)."""


def read_job(path: Path) -> Job:
    """The job in this file. Raises BadInput with a line for each thing that is wrong."""
    return checked(read_manifest(path), str(path))


def checked(written: Any, where: str) -> Job:
    """The job of a manifest that was found at `where`. Raises BadInput with a line for each thing that is wrong."""
    manifest, found = named(written)
    if found:
        raise BadInput(*(f"{where}: {problem}" for problem in found))
    return to_job(manifest)


def read_manifest(path: Path) -> Any:
    """The one document in this file, not checked further. Raises BadInput.

    Of several documents the one job: a file for `kubectl apply` may hold its volume's claim too.
    """
    found = [document for document in parsed(text_of(path, LARGEST_BYTES), str(path)) if document is not None]
    if not found:
        raise BadInput(f"{path}: is empty; give one {KIND}")
    if len(found) == 1:
        return found[0]
    jobs = [document for document in found if isinstance(document, dict) and document.get("kind") == KIND]
    if len(jobs) != 1:
        raise BadInput(f"{path}: holds {len(found)} documents, {len(jobs)} of them a {KIND}; give a file with one")
    return jobs[0]


def read_only_job(path: Path) -> Any:
    """The one job in this file, not checked further. Raises BadInput if the file has something else too."""
    found = read_file(path)
    jobs = [one.content for one in found if isinstance(one.content, dict) and one.content.get("kind") == KIND]
    if len(jobs) != 1:
        raise BadInput(f"{path}: has {len(jobs)} {KIND}s; give a file with one")
    if others := len(found) - 1:
        raise BadInput(f"{path}: has {others} objects of other kinds; apply the file with kubectl apply -f {path}")
    return jobs[0]


_ENDING = "xxxxx"
"""An API server appends five characters (k8s.io/apiserver's storage/names)."""


def with_a_name(manifest: Value) -> Value:
    """This manifest with a name as long as the API server's, if that chooses it; else the manifest itself."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name"):
        return manifest
    begin = metadata.get("generateName")
    if not begin or not isinstance(begin, str):
        return manifest
    return {**manifest, "metadata": {**metadata, "name": begin + _ENDING}}


def named(manifest: Value) -> tuple[Value, list[Problem]]:
    """`with_a_name` of this manifest, and what is wrong with it, said of the fields that the file has."""
    whole = with_a_name(manifest)
    found = problems(whole)
    if whole is not manifest:
        begin = "metadata.generateName"
        found = [Problem(begin, one.message) if one.field == "metadata.name" else one for one in found]
    return whole, found


def hint(metadata: Metadata) -> str:
    """Which command takes a job that was given its name here; nothing of another."""
    begin = (metadata.model_extra or {}).get("generateName")
    if not begin or metadata.name != begin + _ENDING:
        return ""
    return "kubectl create takes it, as kubectl apply wants metadata.name"
