# SPDX-License-Identifier: Apache-2.0
"""Counts: how many tasks of a job are up, and how many of each role are in each state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dtjob.api.status.replica_status import ReplicaStatus
from dtjob.api.status.status import Status
from dtjob.plan.seen.children import PodState, TaskView

COUNTED_AS = {
    PodState.RUNNING: "active",
    PodState.PENDING: "pending",
    PodState.SUCCEEDED: "succeeded",
    PodState.FAILED: "failed",
    PodState.LOST: "failed",
    PodState.IGNORED: "failed",
}
"""Names of the counts in `replicaStatuses`."""


def count_tasks(status: Status, views: Iterable[TaskView]) -> Status:
    """Write how many tasks are up, the tasks by role and state, and which have done their part."""
    views = tuple(views)
    ready = f"{sum(view.up for view in views)}/{len(views)}"
    done = {view.task.id: view.attempt for view in views if view.state is PodState.SUCCEEDED}
    status = status.but(ready=ready, replica_statuses=replica_statuses(views))
    return status if done == status.internal.finished else status.remembering(finished=done)


def replica_statuses(views: Iterable[TaskView]) -> dict[str, ReplicaStatus]:
    """Tasks by role and state."""
    counts: dict[str, dict[str, int]] = {}
    for (role, state), number in Counter((view.task.role, view.state) for view in views).items():
        counted = counts.setdefault(role.value, {"replicas": 0})
        counted["replicas"] += number
        if name := COUNTED_AS.get(state):
            counted[name] = counted.get(name, 0) + number
    return {role: ReplicaStatus(**counted) for role, counted in counts.items()}
