# SPDX-License-Identifier: Apache-2.0
"""Stalled tasks whose supervisors are silent: they cannot end their containers, and their group waits for them.

Only a supervisor that was heard can say that training stands still. It waits for another in the rendezvous, or has
ended its own container over the stall. A status that cannot be read is no stall. If the chief's status cannot be read,
others tell that it is silent.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.objects import topology
from dtjob.objects.topology import Task
from dtjob.plan.failure.cause import of_pod
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import Children, PodState, TaskView
from dtjob.plan.seen.situation import Situation

ENOUGH_TELLERS, MOST_REPORTERS = 3, 12
"""If the chief's status cannot be read, others are read: until ENOUGH_TELLERS of them can be, and MOST_REPORTERS at
most. A new task has never heard the chief."""


def reporters(job: Job, children: Children, running: Mapping[str, str]) -> list[str]:
    """The tasks whose status is to be read because the chief's cannot: the first of its group, in order. None where
    nothing can come of it: under other strategies no other task knows whether there are steps.

    - running: by task, the uid of its pod that runs.
    """
    chief, spec = topology.chief_task(job), job.spec
    silence, found = children.silences.get(chief.id), list[str]()
    if spec.failure_policy.stall_timeout_seconds is None or spec.strategy is not Strategy.MULTI_WORKER_MIRRORED:
        return found
    if silence is None or silence.pod_uid != running.get(chief.id):
        return found
    for task in topology.tasks(job):
        readable = sum(one not in children.silences for one in found)
        if readable == ENOUGH_TELLERS or len(found) == MOST_REPORTERS:
            break
        if task != chief and task.role is not Role.EVALUATOR and task.id in running:
            found.append(task.id)
    return found


def silent_tasks(situation: Situation) -> Iterator[Failure]:
    """The tasks that run, as their nodes say, and that the group waits for, as the chief says. By the chief's clock,
    nothing was heard of this attempt for failurePolicy.stallTimeoutSeconds. A pod that waits for a node has another
    attempt than the one that was heard, or does not run. The chief is one if others say so of it."""
    if situation.group_job.spec.failure_policy.stall_timeout_seconds is None:
        return
    chief = situation.chief
    if _others_wait_for_the_chief(situation):
        yield _silent(chief, situation.now)
        return  # whom it called silent before that may have spoken since
    if reported := _reported_silent(situation, chief):
        yield from (_silent(view, situation.now) for view in situation.training if _is_silent(view, reported))


def _others_wait_for_the_chief(situation: Situation) -> bool:
    """Whether the chief runs, its status cannot be read, and one whose status can says that it waits for it in vain."""
    chief, silences = situation.chief, situation.children.silences
    silence = silences.get(chief.task.id)
    if chief.pod is None or silence is None or silence.pod_uid != chief.pod["metadata"]["uid"]:
        return False
    readable = situation.reports.keys() - silences.keys()
    others = (view for view in situation.training if view.task.id in readable)
    return any(_is_silent(chief, _reported_silent(situation, view)) for view in others)


def _reported_silent(situation: Situation, reporter: TaskView) -> Mapping[str, Any]:
    """Of which tasks, at which attempts, this one's supervisor says that its group waits for them."""
    report = situation.reports.get(reporter.task.id, {})
    if report.get("attempt", reporter.attempt) != reporter.attempt:
        return {}
    return {task: attempt for task, attempt in report.get("silent", {}).items() if task != reporter.task.id}


def _is_silent(view: TaskView, reported: Mapping[str, Any]) -> bool:
    """Whether the task runs at the attempt that was reported."""
    return view.pod is not None and view.state is PodState.RUNNING and reported.get(view.task.id) == view.attempt


def _silent(view: TaskView, now: datetime) -> Failure:
    assert view.pod is not None
    why = "stalled: its supervisor is silent, and its group waits for it"
    return of_pod(view.task, view.pod, Cause.STALLED, now, why)


def silent_stragglers(situation: Situation, failed: Iterable[Failure]) -> list[Task]:
    """The tasks that run and that one of these failures waited for: they are replaced with it."""
    named = {failure.end.straggler for failure in failed if failure.cause is Cause.STALLED}
    named -= {failure.task.id for failure in failed}
    if not named:
        return []
    return [view.task for view in situation.training if view.task.id in named and view.state is PodState.RUNNING]
