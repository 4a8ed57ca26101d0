# SPDX-License-Identifier: Apache-2.0
"""Pods that the watch does not show any more, and which may still run.

A watch by label says DELETED of an object whose label somebody has removed. Before such a pod is replaced, the API
server is asked for it by name, which nobody can change.
"""

from __future__ import annotations

from dtjob.objects import topology
from dtjob.plan.failure.budget import is_due
from dtjob.plan.pods.one_chief import writer_left
from dtjob.plan.seen.children import PodState, Unread
from dtjob.plan.seen.situation import Situation

LOOKED_BACK = 5
"""Earlier attempts to ask for: a chief is made only when all before it have ended, so only the last one that was made
may be running; and attempts that are given up before they are made are few in a row."""


def find_vanished(situation: Situation) -> None:
    """Raises Unread for pods that existed, are not seen any more, and were not asked for yet."""
    workers = situation.status.workers
    if situation.status.internal.all_created:
        views = situation.views
    elif workers is not None and workers.resizing is not None:
        views = (situation.chief,)  # its next one is so many attempts later that it would not be looked for
    else:
        return
    missing = [view for view in views if view.state is PodState.MISSING]
    names = [topology.pod_name(situation.group_job, view.task, view.attempt) for view in missing]
    _ask(situation, names)


def find_earlier_chiefs(situation: Situation) -> None:
    """Raises Unread for the earlier pods of a chief that is about to be made, if they may be running and were not asked
    for yet."""
    job, chief = situation.group_job, situation.chief
    if chief.state is not PodState.MISSING or not is_due(situation.status.internal.incident, situation.now):
        return
    if writer_left(situation) is not None:
        return
    seen = {pod["metadata"]["name"] for pod in chief.pods}
    names = []
    for attempt in reversed(range(max(0, chief.attempt - LOOKED_BACK), chief.attempt)):
        name = topology.pod_name(job, chief.task, attempt)
        if name in seen:
            break
        names.append(name)
    _ask(situation, names)


def _ask(situation: Situation, names: list[str]) -> None:
    if unknown := [name for name in names if name not in situation.children.gone]:
        raise Unread(pods=unknown)
