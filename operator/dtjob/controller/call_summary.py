# SPDX-License-Identifier: Apache-2.0
"""Call summary: the calls of one plan as Events: one for all pods that were created, and one for all that
were deleted.

The reasons are those of Kubernetes' own controllers, so that who looks for these finds them on a job too.
"""

import re
from collections.abc import Iterable

from dtjob.plan.actions import Event

CREATED = "SuccessfulCreate"
DELETED = "SuccessfulDelete"
REFUSED = "FailedCreate"
REPAIRED = "Repaired"
NAMED = 3
"""Pods that an event names; of the others it gives the number."""


class CallSummary:
    """Collects what was done for one job; `events` says it."""

    def __init__(self) -> None:
        self._created: list[str] = []
        self._deleted: list[str] = []
        self._refused: dict[str, str] = {}
        self._repaired: list[str] = []

    def created(self, kind: str, name: str, *, again: bool = False) -> None:
        """An object was made. Only pods are told of, and what pods had already (`again`)."""
        if kind == "Pod":
            self._created.append(name)
        elif again:
            self._repaired.append(f"{kind} {name} was missing and has been created again")

    def deleted(self, kind: str, name: str) -> None:
        """A deletion was asked for."""
        if kind == "Pod":
            self._deleted.append(name)

    def refused(self, kind: str, name: str, why: str) -> None:
        """An object could not be made, for a reason that is new."""
        if kind == "Pod":
            self._refused[name] = why

    def repaired(self, kind: str, name: str, field: str) -> None:
        """Somebody had changed an object, which is now as it should be."""
        self._repaired.append(f"{kind} {name} differed in {field} and is as it should be again")

    def events(self) -> list[Event]:
        """At most one event of each reason, but for what was repaired."""
        events = [Event("Normal", DELETED, f"Deleted {_pods(self._deleted)}")] if self._deleted else []
        if self._created:
            events.append(Event("Normal", CREATED, f"Created {_pods(self._created)}"))
        if self._refused:
            first = min(self._refused, key=_by_number)
            text = f"Error creating {_pods(self._refused)}: {self._refused[first]}"
            events.append(Event("Warning", REFUSED, text))
        return [*events, *(Event("Normal", REPAIRED, text) for text in self._repaired)]


def _by_number(name: str) -> list[str | int]:
    """Orders pods by role and number, as the calls come back in any order: worker-9 before worker-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _pods(them: Iterable[str]) -> str:
    """`pod: a`, or `5 pods: a, b, c and 2 more`."""
    names = sorted(them, key=_by_number)
    if len(names) == 1:
        return f"pod: {names[0]}"
    more = len(names) - NAMED
    return f"{len(names)} pods: {', '.join(names[:NAMED])}{f' and {more} more' if more > 0 else ''}"
