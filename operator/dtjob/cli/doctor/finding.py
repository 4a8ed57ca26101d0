# SPDX-License-Identifier: Apache-2.0
"""One thing that was looked at. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How it is."""

    GOOD = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Finding:
    """What was found, and what to do about it."""

    what: str
    level: Level
    said: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f". {self.advice}" if self.advice else ""
        return f"{self.level.value:<9} {self.what}: {self.said}{advice}"


def good(what: str, said: str) -> Finding:
    """All is well."""
    return Finding(what, Level.GOOD, said)


def note(what: str, said: str, advice: str = "") -> Finding:
    """Some jobs cannot run, or not as well."""
    return Finding(what, Level.NOTE, said, advice)


def problem(what: str, said: str, advice: str) -> Finding:
    """No job can run."""
    return Finding(what, Level.PROBLEM, said, advice)


def not_seen(what: str, said: str) -> Finding:
    """The user may not look at it."""
    return Finding(what, Level.NOT_SEEN, said)
