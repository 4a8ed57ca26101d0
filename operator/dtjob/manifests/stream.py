# SPDX-License-Identifier: Apache-2.0
"""Reads Kubernetes manifests from files, folders and standard input: streams of documents and lists of kind List."""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dtjob.bad_input import BadInput
from dtjob.manifests.manifest_yaml import documents

STANDARD_INPUT = "-"
SUFFIXES = (".yaml", ".yml", ".json")
"""Of the files in a folder that are read."""
LARGEST_BYTES = 64 * 1024 * 1024
"""Of one file, which may hold many manifests."""


@dataclass(frozen=True)
class Document:
    """One manifest, and where it was found."""

    where: str
    content: Any


def read_documents(paths: Iterable[Path]) -> list[Document]:
    """Every manifest in these files and folders, in order. `-` is standard input. Raises BadInput."""
    return [one for path in paths for file in _files(path) for one in read_file(file)]


def read_file(path: Path) -> list[Document]:
    """Every manifest in this file, or in standard input if it is `-`. Raises BadInput."""
    name = "standard input" if str(path) == STANDARD_INPUT else str(path)
    found = [content for content in parsed(text_of(path), name) if content is not None]
    flat = [item for content in found for item in _items(content)]
    return [Document(name if len(flat) == 1 else f"{name}, document {at}", one) for at, one in enumerate(flat, 1)]


def text_of(path: Path, most: int = LARGEST_BYTES) -> str:
    """The text of this file, or standard input if it is `-`. Raises BadInput."""
    try:
        if str(path) == STANDARD_INPUT:
            found = sys.stdin.buffer.read(most + 1)
        else:
            with path.open("rb") as file:
                found = file.read(most + 1)
        if len(found) > most:
            raise BadInput(f"{path}: larger than {most // 1024} KiB, which no API server would take")
        return found.decode()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not a text file in UTF-8; give a job's YAML or JSON") from None


def parsed(text: str, name: str) -> list[Any]:
    """The documents of this text, of which some may be empty. Raises BadInput, which names `name`."""
    try:
        return list(documents(text))
    except yaml.YAMLError as error:
        if "{{" in text:
            raise BadInput(f"{name}: is a template of helm; render it first: helm template CHART > FILE") from None
        raise BadInput(f"{name}: is not YAML: {_one_line(error)}") from None
    except ValueError as error:  # a tag such as !!timestamp before what is none
        raise BadInput(f"{name}: is not YAML: {error}") from None
    except RecursionError:
        raise BadInput(f"{name}: is not a manifest: nested too deeply") from None


def _files(path: Path) -> list[Path]:
    """The file itself, or those of the folder and its sub-folders. Raises BadInput for a folder without any.

    Hidden files and folders, such as .dtjob and .git, and links are left out: they lead to what is no manifest.
    """
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        there = (Path(folder) / name for name in files if not name.startswith("."))
        found += [file for file in there if file.suffix in SUFFIXES and file.is_file() and not file.is_symlink()]
    if not found:
        ends = ", ".join(SUFFIXES)
        raise BadInput(f"{path}: the folder has no file that ends with {ends} (hidden files and links are left out)")
    return sorted(found)


def _items(content: Any) -> Iterator[Any]:
    """The manifests of a List, else the manifest itself."""
    kind = content.get("kind") if isinstance(content, dict) else None
    if isinstance(kind, str) and kind.endswith("List") and isinstance(content.get("items"), list):
        for item in content["items"]:
            yield from _items(item)
    else:
        yield content


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
