# SPDX-License-Identifier: Apache-2.0
"""Unreached: all tasks run, and some cannot reach each other, so that training does not begin.

The chief's supervisor names the tasks that its group waits for and has not heard for 30 s (docs/contract.md:
`unreached`). It cannot know whether their pods run. The operator knows that.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.objects import topology
from dtjob.plan.draft import Draft
from dtjob.plan.record.conditions import RUNNING, condition
from dtjob.plan.seen.children import Children, PodState, TaskView, container_status, created_at
from dtjob.plan.seen.situation import Situation

UNREACHABLE = "TasksUnreachable"
"""The reason of Running, and of the event."""
SAID_AFTER = timedelta(seconds=30)
"""A task that has run for less may not have reported yet."""
NAMED = 3
"""Tasks that the message names."""


def why_unreached(situation: Situation) -> str:
    """Which tasks run and are not heard by the chief, and where to look; empty if there are none."""
    unheard = [view for view in _unheard(situation) if situation.now >= _running_since(view) + SAID_AFTER]
    if not unheard:
        return ""
    reported = _reported_unreached(situation.children, situation.chief.task.id)
    named = [view.task.id for view in unheard[:NAMED]]
    who = ", ".join(named) + (" and others" if len(unheard) > NAMED else "")
    chief, network = situation.chief.task.id, situation.group_job.spec.network
    reasons = [f"{chief} says: {reported[task]}" for task in named if reported[task]]
    reasons += [
        f"{task} says: {why}" for task in named if (why := _reported_unreached(situation.children, task).get(chief))
    ]
    said = f" ({'; '.join(map(str, reasons[:2]))})" if reasons else ""
    return (
        f"training waits, because {chief} cannot be reached by {who}, though all run{said}. Look for a NetworkPolicy "
        f"or a service mesh. The job's pods need egress to each other, such as to ports {network.port} and "
        f"{network.rendezvous_port}, and to the cluster's DNS"
    )


def note_unreached(draft: Draft) -> None:
    """Tell users of a job whose tasks have just turned out not to reach each other."""
    said, before = (condition(one.conditions, RUNNING) for one in (draft.status, draft.situation.written))
    if said is not None and said.reason == UNREACHABLE and (before is None or before.reason != UNREACHABLE):
        draft.add_event("Warning", UNREACHABLE, said.message)


def unreached_changes_at(situation: Situation) -> datetime | None:
    """When time alone makes a task count as one that cannot be reached."""
    return min((_running_since(view) + SAID_AFTER for view in _unheard(situation)), default=None)


def unreached_reporter(job: Job, children: Children, running: Container[str]) -> list[str]:
    """The task whose status is to be read beside the chief's, as it may know why the chief does not hear it."""
    reported = _reported_unreached(children, topology.chief_task(job).id)
    return [task for task in reported if task in running][:1]


def _unheard(situation: Situation) -> list[TaskView]:
    """The tasks that run and that the chief, which runs too, says it has not heard."""
    chief = situation.chief
    if chief.state is not PodState.RUNNING or chief.task.id not in situation.reports:
        return []
    reported = _reported_unreached(situation.children, chief.task.id)
    return [view for view in situation.training if view.task.id in reported and view.state is PodState.RUNNING]


def _reported_unreached(children: Children, task: str) -> Mapping[str, Any]:
    """Whom this task's supervisor says that it cannot reach; of one that is silent nobody knows whether that holds."""
    reported = children.reports.get(task, {}).get("unreached")
    return reported if isinstance(reported, Mapping) and task not in children.silences else {}


def _running_since(view: TaskView) -> datetime:
    assert view.pod is not None
    started = container_status(view.pod)["state"]["running"].get("startedAt")
    return times.parse(started) if started else created_at(view.pod)
