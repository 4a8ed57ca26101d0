"""Small writers of the job's status, used by `plan` only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.objects.topology import Task
from dtjob.plan import conditions
from dtjob.plan.children import PodState, TaskView
from dtjob.plan.policies.failure_cause import Cause

PHASE_CONDITIONS = (conditions.RUNNING, conditions.RESTARTING, conditions.SUCCEEDED, conditions.FAILED)


def set_phase(status: dict[str, Any], phase: str, reason: str, message: str, now: datetime) -> None:
    """Set phase, reason and message, and the condition of the phase's name; the other phases' conditions turn
    False."""
    status["phase"], status["reason"], status["message"] = phase, reason, message
    known = status.setdefault("conditions", [])
    for type_ in PHASE_CONDITIONS:
        known = conditions.with_condition(known, type_, type_ == phase, reason, message, now)
    status["conditions"] = known
    status.setdefault("startTime", times.rfc3339(now))
    if phase in (conditions.SUCCEEDED, conditions.FAILED):
        status["completionTime"] = times.rfc3339(now)


def bump_attempts(status: dict[str, Any], tasks: Iterable[Task]) -> None:
    """Give each task its next attempt. The map is sparse: a task that never failed is not in it."""
    attempts = status.setdefault("attempts", {})
    for task in tasks:
        attempts[task.id] = attempts.get(task.id, 0) + 1
    status["allCreated"] = False


def count_restart(status: dict[str, Any], cause: Cause, instead_of: Cause | None) -> None:
    """Count a restart under its cause; `instead_of` is the cause under which the same incident was counted before."""
    restarts = status["restarts"]
    causes = restarts.setdefault("causes", {})
    if instead_of is None:
        restarts["total"] += 1
    elif causes[instead_of.value] > 1:
        causes[instead_of.value] -= 1
    else:
        del causes[instead_of.value]
    causes[cause.value] = causes.get(cause.value, 0) + 1


def replica_statuses(views: list[TaskView], now: datetime) -> dict[str, dict[str, int]]:
    """Tasks by role and state: total, and active, pending, succeeded, failed where above 0."""
    counts: dict[str, dict[str, int]] = {}
    names = {
        PodState.RUNNING: "active",
        PodState.PENDING: "pending",
        PodState.SUCCEEDED: "succeeded",
        PodState.FAILED: "failed",
        PodState.LOST: "failed",
    }
    for view in views:
        role = counts.setdefault(view.task.role.value, {"replicas": 0})
        role["replicas"] += 1
        name = names.get(view.state(now))
        if name:
            role[name] = role.get(name, 0) + 1
    return counts
