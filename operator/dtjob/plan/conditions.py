"""Conditions in the Kubernetes form: one list of JSON, whatever they are about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dtjob import times

BLOCKED = "Blocked"
"""Something that the job needs cannot be made. Like the next, this is no phase's."""
EVALUATION_GIVEN_UP = "EvaluationGivenUp"
"""Training has succeeded, and what it saved last is not evaluated."""

Conditions = tuple[dict[str, Any], ...]


def holds(conditions: Iterable[dict[str, Any]], type_: str) -> bool:
    """Whether this condition holds."""
    return any(condition["type"] == type_ and condition["status"] == "True" for condition in conditions)


def with_condition(
    conditions: Iterable[dict[str, Any]], type_: str, holds: bool, reason: str, message: str, now: datetime
) -> Conditions:
    """The conditions with one of them set. A condition that never held is left out; one that did stays, as False.

    `lastTransitionTime` moves only when the status does (Kubernetes API conventions).
    """
    conditions = tuple(conditions)
    old = next((condition for condition in conditions if condition["type"] == type_), None)
    if old is None and not holds:
        return conditions
    status = "True" if holds else "False"
    since = old["lastTransitionTime"] if old and old["status"] == status else times.rfc3339(now)
    said = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if old is None:
        return (*conditions, said)
    return tuple({**old, **said} if condition is old else condition for condition in conditions)
