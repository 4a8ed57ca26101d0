"""Conditions in the Kubernetes form."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dtjob import times

RUNNING = "Running"
RESTARTING = "Restarting"
BLOCKED = "Blocked"
SUCCEEDED = "Succeeded"
FAILED = "Failed"


def with_condition(
    conditions: list[dict[str, Any]], type_: str, holds: bool, reason: str, message: str, now: datetime
) -> list[dict[str, Any]]:
    """The conditions with one of them set. A condition that never held is left out; one that did stays, as False.

    `lastTransitionTime` moves only when the status does (Kubernetes API conventions).
    """
    old = next((condition for condition in conditions if condition["type"] == type_), None)
    if old is None and not holds:
        return conditions
    status = "True" if holds else "False"
    since = old["lastTransitionTime"] if old and old["status"] == status else times.rfc3339(now)
    new = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if old is None:
        return [*conditions, new]
    return [new if condition is old else condition for condition in conditions]
