# SPDX-License-Identifier: Apache-2.0
"""One thing that was looked at. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How it is."""

    GOOD = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    UNSEEN = "not seen"


@dataclass(frozen=True)
class Finding:
    """What was found, and what to do about it."""

    what: str
    level: Level
    said: str
    mend: str = ""

    def __str__(self) -> str:
        mend = f". {self.mend}" if self.mend else ""
        return f"{self.level.value:<9} {self.what}: {self.said}{mend}"


def good(what: str, said: str) -> Finding:
    """All is well."""
    return Finding(what, Level.GOOD, said)


def note(what: str, said: str, mend: str = "") -> Finding:
    """Some jobs cannot run, or not as well."""
    return Finding(what, Level.NOTE, said, mend)


def problem(what: str, said: str, mend: str) -> Finding:
    """No job can run."""
    return Finding(what, Level.PROBLEM, said, mend)


def unseen(what: str, said: str) -> Finding:
    """The user may not look at it."""
    return Finding(what, Level.UNSEEN, said)
