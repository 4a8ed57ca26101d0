"""Conditions in the Kubernetes form: one list of JSON, whatever they are about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dtjob import times

BLOCKED = "Blocked"
"""Something that the job needs cannot be made."""
CHECKPOINTS_KEPT = "CheckpointsKept"
"""Checkpoints outlive the pod that writes them; there from the start, where a job has checkpoints."""

Conditions = tuple[dict[str, Any], ...]


def with_condition(
    conditions: Iterable[dict[str, Any]],
    type_: str,
    holds: bool | None,
    reason: str,
    message: str,
    now: datetime,
    generation: int | None = None,
    always: bool = False,
) -> Conditions:
    """The conditions with one of them set; `holds` None: nobody knows. One that never held is left out, but with
    `always`; one that did stays, as False.

    `lastTransitionTime` moves only when the status does, and `generation` is that of the job from which it follows
    (Kubernetes API conventions); None: not known.
    """
    conditions = tuple(conditions)
    old = next((condition for condition in conditions if condition["type"] == type_), None)
    if old is None and not holds and not always:
        return conditions
    status = "Unknown" if holds is None else str(holds)
    since = old["lastTransitionTime"] if old and old["status"] == status else times.rfc3339(now)
    said = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation is not None:
        said["observedGeneration"] = generation
    if old is None:
        return (*conditions, said)
    return tuple({**old, **said} if condition is old else condition for condition in conditions)
