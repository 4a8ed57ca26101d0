# SPDX-License-Identifier: Apache-2.0
"""Which files of a folder stay at home: those of .dtjobignore, in the form of .gitignore, and what nobody needs."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = ".dtjobignore"
ALWAYS = (".git/", ".dtjob/", "__pycache__/", "*.pyc", ".venv/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", FILE)
"""Patterns that hold without a file. A later line that begins with ! brings a file back."""


@dataclass(frozen=True)
class Pattern:
    """One line."""

    form: re.Pattern[str]
    folders_only: bool
    keeps: bool
    """The line begins with !."""


def patterns(lines: Iterable[str]) -> list[Pattern]:
    """The patterns of these lines, without comments."""
    return [found for line in lines if (found := _pattern(line.rstrip()))]


def files_of(directory: Path) -> Iterator[Path]:
    """The files of a folder that travel, relative to it, in the order of their names."""
    file = directory / FILE
    known = patterns([*ALWAYS, *(file.read_text("utf-8").splitlines() if file.is_file() else ())])
    yield from _below(directory, Path(), known)


def _below(root: Path, folder: Path, known: list[Pattern]) -> Iterator[Path]:
    for entry in sorted((root / folder).iterdir()):
        path = folder / entry.name
        if _is_ignored(path.as_posix(), entry.is_dir(), known):
            continue
        if entry.is_dir():
            yield from _below(root, path, known)
        elif entry.is_file():
            yield path


def _is_ignored(path: str, is_folder: bool, known: list[Pattern]) -> bool:
    ignored = False
    for pattern in known:
        if (is_folder or not pattern.folders_only) and pattern.form.fullmatch(path):
            ignored = not pattern.keeps
    return ignored


def _pattern(line: str) -> Pattern | None:
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    text = line.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    form = "".join(map(_part, re.findall(r"\*\*/|/\*\*|\*|\?|\[[^\]]+\]|.", text.lstrip("/"))))
    return Pattern(re.compile(form if anchored else f"(?:.*/)?{form}"), folders_only, keeps)


def _part(part: str) -> str:
    known = {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}
    if part.startswith("[") and len(part) > 1:
        return part.replace("[!", "[^")
    return known.get(part, re.escape(part))
