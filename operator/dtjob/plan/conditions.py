"""Conditions in the Kubernetes form: one list of JSON, whatever they are about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.phase import Phase

BLOCKED = "Blocked"
"""Something that the job needs cannot be made. Like the others here, this is no phase's."""
EVALUATION_GIVEN_UP = "EvaluationGivenUp"
"""What training saves last is not evaluated: of a job that goes on, since a rule ignores its evaluator's failure."""
CHECKPOINTS_KEPT = "CheckpointsKept"
"""Checkpoints outlive the pod that writes them; there from the start, where a job has checkpoints."""

SUSPENDED = "Suspended"
"""The job is to have no pods for now, as in batch/v1."""
QUOTA_RESERVED, ADMITTED = "QuotaReserved", "Admitted"
"""As the job's Workload has them, where it is in a queue of Kueue."""
QUEUE_IGNORED = "QueueNameIgnored"
"""The label that names a queue was set or changed while the job ran, and does nothing yet."""
COMPLETE = "Complete"
"""The job has succeeded: batch/v1's word beside our own, for tools that know Jobs."""

Conditions = tuple[dict[str, Any], ...]


def holds(conditions: Iterable[dict[str, Any]], type_: str) -> bool:
    """Whether this condition holds."""
    return any(condition["type"] == type_ and condition["status"] == "True" for condition in conditions)


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


def running_since(conditions: Iterable[dict[str, Any]]) -> datetime | None:
    """Since when all that training needs has been running, None where something of it is not."""
    held = (one for one in conditions if one["type"] == Phase.RUNNING and one["status"] == "True")
    since = next(held, {}).get("lastTransitionTime")
    return times.parse(since) if since else None


def stopped_running(conditions: Iterable[dict[str, Any]], now: datetime) -> datetime | None:
    """Since when not all that training needs has been running, where something has failed of it: now, while nobody has
    said so. None where it never ran."""
    said = next((one for one in conditions if one["type"] == Phase.RUNNING), None)
    if said is None:
        return None
    return now if said["status"] == "True" else times.parse(said["lastTransitionTime"])
