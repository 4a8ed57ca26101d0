# SPDX-License-Identifier: Apache-2.0
"""Resize: a group ends, and one with another number of workers continues at its last checkpoint.

A cluster spec cannot change in a container that runs, so all that train are made anew. They are told to end, which
saves as a suspension does. They are made when all have ended. Both halves are written ahead. Nothing is counted or
charged for it.
"""

from datetime import datetime
from functools import partial

from dtjob.api.counted import counted
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.block import whole
from dtjob.api.status.status import Status
from dtjob.api.status.workers import Resizing
from dtjob.objects import gangs, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import ROLE as PLACEHOLDER
from dtjob.objects.placeholder import is_placeholder, placeholder, placeholder_name
from dtjob.plan.actions import Create, Delete
from dtjob.plan.diagnosis.checkpoints_kept import checkpoints_end, goes_on_from
from dtjob.plan.draft import Draft
from dtjob.plan.elastic.room import ROOM, SCALED, goal, placeholders, placeholders_wanted
from dtjob.plan.kueue import placed, pod_set_of
from dtjob.plan.record.status import BLOCKED, set_condition, set_phase
from dtjob.plan.seen.children import TaskView, count_tasks, deleting, ended, is_lost
from dtjob.plan.seen.pod_facts import facts_of
from dtjob.plan.seen.situation import Situation, changing

RESIZING, RESIZED = "Resizing", "Resized"
"""Reasons of the events; the first is that of the phase too."""


def begin(draft: Draft, change: Resizing) -> None:
    """Note that the group is to end for another, and tell users."""
    workers = draft.status.workers
    assert workers is not None
    adjusted = None if change.reason == SCALED else whole(draft.now)
    workers = workers.but(resizing=change, reason=change.reason, message=change.message, adjusted_time=adjusted)
    workers = workers.but(unschedulable_since=None)
    draft.add_event("Normal", RESIZING, f"Workers {workers.replicas} -> {change.to}: {change.message}")
    draft.status = draft.status.but(workers=workers).remembering(all_created=False)


def end_group(draft: Draft, change: Resizing) -> None:
    """Delete the pods of the group that is to end. `start_group` is next, when all of them have ended."""
    situation, why = draft.situation, "the number of workers changes"
    pods = _of_the_group(situation)
    draft.do(Delete.of(pod, why) for pod in pods if not deleting(pod))
    workers = situation.status.workers
    assert workers is not None
    message = f"{change.message}: the group of {counted(workers.replicas, 'worker')} saves and ends"
    status = set_phase(situation.status, Phase.RESTARTING, RESIZING, message, situation.now)
    status = set_condition(status, BLOCKED, False, RESIZING, "", situation.now)  # nothing is made until all have ended
    draft.status = count_tasks(status, situation.views).remembering(all_created=False)
    draft.look_again(*(facts_of(pod).lost_at for pod in pods))


def is_over(situation: Situation) -> bool:
    """Whether no pod of the group that is to end can train any more."""
    return all(ended(pod) or is_lost(pod, situation.now) for pod in _of_the_group(situation))


def start_group(draft: Draft, change: Resizing) -> None:
    """Begin a group of the size that was decided, or a smaller one if the spec says so by now, and tell users."""
    situation = draft.situation
    workers = situation.status.workers
    assert workers is not None
    to, step = min(change.to, goal(situation, workers)), situation.status.checkpoint_step
    replaced = [view.task for view in _group(situation)]
    where = goes_on_from(situation, replaced, step) if step >= 0 else ""
    # None as well where the spec has changed since the group was told to end: there may be room for that at once.
    _begin_group(draft, to, None if workers.adjusted_time is None else whole(situation.now))
    if checkpoints_end(situation, replaced):
        draft.status = draft.status.but(checkpoint=None)
    draft.add_event("Normal", RESIZED, f"Training goes on with {counted(to, 'worker')}{where}")


def _begin_group(draft: Draft, replicas: int, adjusted: datetime | None) -> None:
    """Begin a group of so many workers, each task at an attempt that no pod of any group was ever made for.
    `adjusted`: when the number was changed for want of room, None if it was not."""
    situation, workers, attempts = draft.situation, draft.status.workers, draft.status.internal.attempts
    assert workers is not None
    group = {view.task for view in _group(situation)}
    stays = {view.task.id: view.attempt for view in situation.views if view.task not in group}
    new = Attempts(exceptions=stays, others=max((attempts.others, *attempts.exceptions.values())) + 1)
    workers = workers.but(replicas=replicas, resizing=None, unschedulable_since=None)
    workers = workers.but(last_scale_time=whole(draft.now), adjusted_time=adjusted)
    draft.status = draft.status.but(workers=workers).remembering(attempts=new, all_created=False)


def go_on_as_desired(draft: Draft) -> None:
    """Give a job that goes on after a suspension as many workers as its spec says and its queue has admitted. What
    there was room for before does not matter."""
    workers = changing(draft.situation.group_job, draft.status.workers)
    if workers is not None and (workers.replicas != goal(draft.situation, workers) or workers.resizing is not None):
        _begin_group(draft, goal(draft.situation, workers), None)


def look_for_room(situation: Situation) -> list[Delete | Create]:
    """The placeholders to delete and to make. A group that ends for a larger one keeps those that it has."""
    job = situation.group_job
    if situation.resizing is not None and situation.resizing.reason == ROOM:
        return []
    wanted = {placeholder_name(job, index): index for index in placeholders_wanted(situation)}
    found = {pod["metadata"]["name"] for pod in placeholders(situation)}
    makes = ((name, partial(_placeholder, situation, index)) for name, index in wanted.items())
    missing = [Create("Pod", name, make, PLACEHOLDER) for name, make in makes if name not in found]
    return [*(one for one in strays(situation) if one.name not in wanted), *missing]


def _placeholder(situation: Situation, index: int) -> Manifest:
    """The placeholder of a worker. It uses the worker's scheduler, on the nodes that the queue has quota of. It is in
    no gang, because it comes alone."""
    job, pod_set = pod_set_of(situation, Role.WORKER)
    made = placeholder(job, index, situation.defaults)
    return placed(gangs.joined(made, job, situation.defaults, alone=True), pod_set)


def strays(situation: Situation) -> list[Delete]:
    """The pods that belong to no task of the group: placeholders, and workers of a larger group before it."""
    if changing(situation.group_job, situation.status.workers) is None:
        return []
    tasks, found = {view.task.id for view in situation.views}, []
    for pod in situation.children.owned_pods(situation.group_job):
        name, task = pod["metadata"]["name"], facts_of(pod).task_id or ""
        left_over = task.startswith(f"{Role.WORKER.value}-") and task not in tasks
        if (left_over or is_placeholder(name)) and not deleting(pod):
            found.append(Delete.of(pod, f"no worker of this group needs {name}"))
    return found


def was_resized_last(status: Status) -> bool:
    """Whether training was last started anew for another number of workers, and not over a failure."""
    workers, incident = status.workers, status.internal.incident
    if workers is None or workers.last_scale_time is None:
        return False
    return incident is None or incident.started_at < workers.last_scale_time


def _group(situation: Situation) -> list[TaskView]:
    """The tasks that end together: all that train, and an evaluator that has to go where the chief goes."""
    follows = topology.evaluator_follows_chief(situation.group_job)
    return [view for view in situation.views if follows or not view.evaluates]


def _of_the_group(situation: Situation) -> list[Manifest]:
    return [pod for view in _group(situation) for pod in view.pods]
