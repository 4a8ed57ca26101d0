# SPDX-License-Identifier: Apache-2.0
"""Reachability: a condition says that the chief task runs and its status cannot be read for some time.

Without it a user sees a job that runs, but no step, no checkpoint and no reason. The cause can be a NetworkPolicy or a
service mesh between the operator and the pod. Nothing follows from it for the training itself.

Tasks that run may not reach each other either, so that training does not begin. The chief's supervisor names the tasks
that its group waits for and has not heard for 30 s (contract.md: `unreached`). It cannot know whether their pods
run. The operator knows that.
"""

from collections.abc import Container, Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.status.status import Status
from dtjob.objects import topology
from dtjob.plan.record.status import RUNNING, condition, set_condition
from dtjob.plan.seen.children import Children, PodState, Silence, TaskView, created_at, facts_of
from dtjob.plan.seen.situation import Draft, Situation

STATUS_REACHABLE = "StatusReachable"
"""The condition's type. It is there from the first time that a status could not be read for so long."""
SAID_AFTER = timedelta(seconds=60)
"""A supervisor that starts, and a node that is busy, are silent for shorter."""


def say_reachability(draft: Draft) -> None:
    """Set the condition if it is to change, and tell users when a status has just become unreachable."""
    situation, silence, chief = draft.situation, _silence(draft.situation), draft.situation.chief.task.id
    said = condition(draft.status.conditions, STATUS_REACHABLE)
    known = said.status if said else None
    if silence is None:
        answers = chief in situation.children.reports and chief not in situation.children.silences
        if known in ("False", "Unknown") and answers:
            draft.status = set_condition(draft.status, STATUS_REACHABLE, True, "Answers", "", draft.now)
        return
    if situation.now < silence.since + SAID_AFTER:
        draft.look_again(silence.since + SAID_AFTER)
        return
    port = situation.group_job.spec.network.status_port
    message = (
        f"the status of {chief} at {silence.address} cannot be read since "
        f"{times.rfc3339(silence.since)}: {silence.message}; training goes on, but its steps and checkpoints are "
        f"unknown here. Look for a NetworkPolicy that keeps the operator from port {port}, for a service mesh "
        f"(keep it out of the job's pods), and at the pod's log"
    )
    if known != "False":
        draft.add_event("Warning", "StatusUnreachable", message)
    status, reason = draft.status, silence.reason
    draft.status = set_condition(status, STATUS_REACHABLE, False, reason, message, draft.now, always=True)


def nothing_to_reach(status: Status, reason: str, now: datetime) -> Status:
    """The status of a job that is to have no chief now. Whether its status could be read says nothing any more."""
    said = condition(status.conditions, STATUS_REACHABLE)
    if said is None or said.status != "False":
        return status
    return set_condition(status, STATUS_REACHABLE, None, reason, "", now)


def _silence(situation: Situation) -> Silence | None:
    """The silence of the pod that is the chief task now, while it runs."""
    chief = situation.chief
    silence = situation.children.silences.get(chief.task.id)
    if silence is None or chief.pod is None or chief.state is not PodState.RUNNING:
        return None
    return silence if silence.pod_uid == chief.pod["metadata"]["uid"] else None


UNREACHABLE = "TasksUnreachable"
"""The reason of Running, and of the event."""
UNHEARD_AFTER = timedelta(seconds=30)
"""A task that has run for less may not have reported yet."""
NAMED = 3
"""Tasks that the message names."""


def why_unreached(situation: Situation) -> str:
    """Which tasks run and are not heard by the chief, and where to look; empty if there are none."""
    unheard = [view for view in _unheard(situation) if situation.now >= _running_since(view) + UNHEARD_AFTER]
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
    """Tell users of a job whose tasks have just turned out not to reach each other. Look again when one of them counts
    as such a task."""
    draft.look_again(*(_running_since(view) + UNHEARD_AFTER for view in _unheard(draft.situation)))
    said, before = (condition(one.conditions, RUNNING) for one in (draft.status, draft.situation.written))
    if said is not None and said.reason == UNREACHABLE and (before is None or before.reason != UNREACHABLE):
        draft.add_event("Warning", UNREACHABLE, said.message)


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
    started = facts_of(view.pod).container["state"]["running"].get("startedAt")
    return times.parse(started) if started else created_at(view.pod)
