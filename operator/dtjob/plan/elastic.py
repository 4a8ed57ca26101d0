# SPDX-License-Identifier: Apache-2.0
"""Elastic workers: when the number of workers that train together changes, to what, and how.

A lower number is followed at once. A higher one, or one that there was no room for, is followed when placeholders have
found room. So training never stops for workers that do not come.

A cluster spec cannot change in a container that runs, so all that train are made anew. They are told to end, which
saves as a suspension does. They are made when all have ended. Both halves are written ahead. Nothing is counted or
charged for it.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from dtjob import times
from dtjob.api.phase import ENDED, Phase
from dtjob.api.spec.elastic_policy import ElasticPolicy
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.block import LONGEST_MESSAGE, cut, whole
from dtjob.api.status.status import Status
from dtjob.api.status.workers import SCALED, Resizing, Workers
from dtjob.api.words import counted
from dtjob.objects import gangs, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import ROLE as PLACEHOLDER
from dtjob.objects.placeholder import is_placeholder, placeholder, placeholder_name
from dtjob.plan.actions import Create, Delete
from dtjob.plan.diagnosis.checkpoints import checkpoints_end, goes_on_from
from dtjob.plan.diagnosis.pending import unscheduled
from dtjob.plan.failure.decisions import trains_without
from dtjob.plan.kueue import COUNT as ADMITTED
from dtjob.plan.kueue import placed, pod_set_of, waiting_words
from dtjob.plan.record.status import BLOCKED, condition, ran_before, set_condition, set_phase
from dtjob.plan.seen.children import (
    PodState,
    TaskView,
    condition_of,
    count_tasks,
    deleting,
    ended,
    facts_of,
    is_lost,
    node_of,
)
from dtjob.plan.seen.situation import Draft, Situation

AS_DESIRED, UNSCHEDULABLE, NO_ROOM, ROOM = "AsDesired", "Unschedulable", "NoRoom", "Room"
FINISHING = "Finishing"
"""Reasons of `status.workers` and of a change. AsDesired: as many as wanted. Scaled: the spec says so. Unschedulable:
too few have a node. NoRoom: more are wanted than there is room for. Room: there is room again. Finishing: training is
about to end, so the number stays as it is."""
_QUOTA = "exceeded quota"
"""As the API server's admission says it."""
COUNT = "spec.replicaSpecs.worker.replicas"


class _Room(NamedTuple):
    """What placeholders have found: how many have a node, whether one was placed and had to go again, and whether the
    scheduler has looked at every one."""

    found: int
    refused: bool
    judged: bool


def resize_due(situation: Situation) -> Resizing | None:
    """The change of size that is to begin now; None if there is none. None begins after a training task has finished,
    because training is about to end."""
    workers = situation.changing
    if workers is None or _about_to_end(situation):
        return None
    if goal(situation, workers) < workers.replicas or _is_news_before_the_start(situation, workers):
        return _as_wanted(situation, workers)
    return _shrinks(situation, workers) or _grows(situation, workers)


def goal(situation: Situation, workers: Workers) -> int:
    """How many workers there are to be: as the spec says, but no more than the job's queue has admitted."""
    queue = situation.status.queue
    admitted = queue.pod_sets.get(Role.WORKER.value, {}).get(ADMITTED) if queue else None
    return workers.desired if admitted is None else min(workers.desired, int(admitted))


def note_room(draft: Draft) -> None:
    """Say in the status whether there is room for the workers, and why there are fewer than desired."""
    situation, now = draft.situation, whole(draft.now)
    workers = situation.changing
    if workers is None:
        return
    since = (workers.unschedulable_since or now) if _waits_for_room(situation) else None
    # A clock that was set back must not hold it back for long.
    since, adjusted = (min(one, now) if one else None for one in (since, workers.adjusted_time))
    if room(situation).refused:  # somebody else was faster; to try it over and over would disturb others for nothing
        adjusted = now
    workers = workers.but(unschedulable_since=since, adjusted_time=adjusted)
    draft.status = draft.status.but(workers=workers)
    reason, message = _words(draft.situation, workers)
    draft.status = draft.status.but(workers=workers.but(reason=reason, message=cut(message, LONGEST_MESSAGE)))


def at_rest(situation: Situation) -> Status:
    """The status about to be written. A suspended or ended job is to have no pods, so its number of workers does not
    change and nothing waits for room."""
    status, workers = situation.status, situation.changing
    if workers is None or status.phase not in (Phase.SUSPENDED, *ENDED):
        return status
    reason, message = (NO_ROOM, _has(workers)) if workers.short else (AS_DESIRED, "")
    workers = workers.but(reason=reason, message=message, resizing=None, unschedulable_since=None)
    return status.but(workers=workers)


def placeholders_wanted(situation: Situation) -> range:
    """The indexes of the workers that placeholders are to find room for. There are none while a task of the group is
    not up, or the group ends for another. There are none before `grows_from`, or if the job is suspended, has ended or
    is about to end."""
    workers = situation.changing
    if workers is None or not _short(situation, workers) or not all(view.up for view in situation.training):
        return range(0)
    at = grows_from(situation)
    over = situation.group_job.spec.suspend or situation.status.ended or _about_to_end(situation)
    if over or situation.resizing is not None or (at is not None and situation.now < at):
        return range(0)
    return range(workers.replicas, goal(situation, workers))


def placeholders(situation: Situation) -> list[Manifest]:
    """The placeholders that there are, those included that are being deleted."""
    return [
        one for one in situation.children.owned_pods(situation.group_job) if is_placeholder(one["metadata"]["name"])
    ]


def room(situation: Situation) -> _Room:
    """What the wanted placeholders have found. One that is lost with its node keeps its name, and is not waited for."""
    names = {placeholder_name(situation.group_job, index) for index in placeholders_wanted(situation)}
    names -= {pod["metadata"]["name"] for pod in placeholders(situation) if is_lost(pod, situation.now)}
    there = [one for one in placeholders(situation) if one["metadata"]["name"] in names and not deleting(one)]
    refused = [one for one in there if facts_of(one).is_terminal and (one.get("status") or {}).get("reason")]
    placed = [one for one in there if node_of(one) and one not in refused]
    waiting = [one for one in there if _unschedulable(one)]
    not_made = len(names) - len(there)
    judged = len(placed) + len(waiting) + (not_made if _over_quota(situation, placeholder=True) else 0)
    return _Room(len(placed), bool(refused), judged == len(names))


def grows_from(situation: Situation) -> datetime | None:
    """The moment before which the group does not grow; None if it may at any."""
    workers = situation.changing
    if workers is None or workers.adjusted_time is None:
        return None
    return workers.adjusted_time + timedelta(seconds=_policy(situation).grow_period_seconds)


def elastic_changes_at(situation: Situation) -> list[datetime | None]:
    """When the number of workers may change though nothing happens."""
    workers = situation.changing
    if workers is None:
        return []
    since = workers.unschedulable_since
    shrinks_at = None if since is None else since + _deadline(situation)
    grows_at = grows_from(situation) if _short(situation, workers) else None
    return [shrinks_at, grows_at, *(facts_of(pod).lost_at for pod in placeholders(situation))]


def _as_wanted(situation: Situation, workers: Workers) -> Resizing:
    """The change to the number of workers that there is to be."""
    return Resizing(to=goal(situation, workers), reason=SCALED, message=f"{COUNT} is {workers.desired}")


def _about_to_end(situation: Situation) -> bool:
    """Whether a task that trains has finished."""
    return any(view.state is PodState.SUCCEEDED for view in situation.training)


def _short(situation: Situation, workers: Workers) -> bool:
    return workers.replicas < goal(situation, workers)


def _policy(situation: Situation) -> ElasticPolicy:
    return situation.group_job.spec.elastic_policy or ElasticPolicy()


def _deadline(situation: Situation) -> timedelta:
    return timedelta(seconds=_policy(situation).schedule_timeout_seconds)


def _is_news_before_the_start(situation: Situation, workers: Workers) -> bool:
    """Whether more are wanted than before of a group that has never run: nothing is lost in making it anew."""
    written = situation.written.workers
    changed = written is not None and written.desired != workers.desired
    return changed and _short(situation, workers) and not ran_before(situation.status)


def _shrinks(situation: Situation, workers: Workers) -> Resizing | None:
    """The size for which there is room, if training has waited too long for more."""
    least, since = _policy(situation).min_replicas, workers.unschedulable_since
    if least is None or since is None or situation.now < since + _deadline(situation):
        return None
    without = _without_room(situation)
    # A chief or a ps that finds no node may get that of a worker: the group is made in the order of its roles.
    fit = workers.replicas - len(without)
    to = max(least, fit)
    if to >= workers.replicas:
        return None
    names = ", ".join(view.task.id for view in without[:3]) + (f" and {len(without) - 3} more" if without[3:] else "")
    field = f"elasticPolicy.scheduleTimeoutSeconds ({_policy(situation).schedule_timeout_seconds})"
    return Resizing(to=to, reason=UNSCHEDULABLE, message=f"there was no room for {names} within {field}")


def _grows(situation: Situation, workers: Workers) -> Resizing | None:
    """By as many as placeholders have found room for, once all of them were looked at."""
    if not placeholders_wanted(situation):
        return None
    found = room(situation)
    if not found.found or not found.judged or found.refused:
        return None
    message = f"there is room for {found.found} more of {workers.desired}"
    return Resizing(to=workers.replicas + found.found, reason=ROOM, message=message)


def _waits_for_room(situation: Situation) -> bool:
    """Whether training stands still, and some task of it has no node to go to."""
    absent = [view for view in situation.training if not view.up]
    goes_on = trains_without(situation.group_job, [view.task for view in absent])
    if not absent or (goes_on and ran_before(situation.status)):
        return False
    return bool(_without_room(situation))


def _without_room(situation: Situation) -> list[TaskView]:
    """The tasks that train for which there is no room."""
    over_quota = _over_quota(situation)
    return [
        view
        for view in situation.training
        if (view.state is PodState.PENDING and view.pod is not None and _unschedulable(view.pod))
        or (view.state is PodState.MISSING and over_quota)
    ]


def _unschedulable(pod: Manifest) -> bool:
    """Whether the scheduler has found no node for it. Not one that a scheduling gate holds back: nobody looked."""
    said = condition_of(pod, "PodScheduled")
    return not node_of(pod) and (said.get("status"), said.get("reason")) == ("False", UNSCHEDULABLE)


def _over_quota(situation: Situation, *, placeholder: bool = False) -> bool:
    """Whether a quota refuses pods of the group, or placeholders. A restarted operator has not tried yet, and reads
    what the last one wrote."""
    pods = {what: why for what, why in situation.children.problems.items() if what.startswith("Pod/")}
    said = [why for what, why in pods.items() if is_placeholder(what) is placeholder]
    if not situation.children.problems and not placeholder:
        blocked = condition(situation.written.conditions, BLOCKED)
        said = [blocked.message] if blocked and blocked.holds else []
    return any(_QUOTA in why for why in said)


def _words(situation: Situation, workers: Workers) -> tuple[str, str]:
    """Why there are so many workers, in one word and in words."""
    if (since := workers.unschedulable_since) is not None:
        least, at = _policy(situation).min_replicas, since + _deadline(situation)
        shrinks = least is not None and least < workers.replicas
        then = f"; it goes on with what there is at {times.rfc3339(at)}" if shrinks else ""
        return UNSCHEDULABLE, f"training waits for room since {times.rfc3339(since)}{then}"
    if workers.replicas != workers.desired and _about_to_end(situation):
        has = f"{counted(workers.replicas, 'worker')}, not {workers.desired}"
        return FINISHING, f"{has}: a task has finished, and training ends"
    return _words_of_too_few(situation, workers) if workers.short else (AS_DESIRED, "")


def _words_of_too_few(situation: Situation, workers: Workers) -> tuple[str, str]:
    has = _has(workers)
    if not _short(situation, workers):
        return NO_ROOM, f"{has}; {waiting_words(situation) or 'its queue has admitted no more'}"
    if placeholders_wanted(situation):
        problems = situation.children.problems.items()
        said = {what.removeprefix("Pod/"): why for what, why in problems if is_placeholder(what)}
        said |= {pod["metadata"]["name"]: unscheduled(pod) for pod in placeholders(situation) if not deleting(pod)}
        refusal = next((f" ({name} waits: {said[name]})" for name in sorted(said) if said[name]), "")
        return NO_ROOM, f"{has}; a placeholder pod waits for room for each of the others{refusal}"
    again = grows_from(situation)
    if again is None or situation.now >= again:
        return NO_ROOM, has
    return NO_ROOM, f"{has}; room for more is looked for from {times.rfc3339(again)} on"


def _has(workers: Workers) -> str:
    return f"the group has {workers.replicas} of {workers.desired} workers"


RESIZING, RESIZED = "Resizing", "Resized"
"""Reasons of the events; the first is that of the phase too."""


def begin(draft: Draft, change: Resizing) -> None:
    """Note that the group is to end for another, and tell users."""
    workers, adjusted = _workers(draft.status), None if change.reason == SCALED else whole(draft.now)
    said = workers.but(resizing=change, reason=change.reason, message=change.message)
    said = said.but(adjusted_time=adjusted, unschedulable_since=None)
    draft.add_event("Normal", RESIZING, f"Workers {workers.replicas} -> {change.to}: {change.message}")
    draft.status = draft.status.but(workers=said).expecting_no_pods()


def end_group(draft: Draft, change: Resizing) -> None:
    """Delete the pods of the group that is to end. `start_group` is next, when all of them have ended."""
    situation, why = draft.situation, "the number of workers changes"
    pods = _of_the_group(situation)
    draft.do(Delete.of(pod, why) for pod in pods if not deleting(pod))
    group = counted(_workers(situation.status).replicas, "worker")
    message = f"{change.message}: the group of {group} saves and ends"
    status = set_phase(situation.status, Phase.RESTARTING, RESIZING, message, situation.now)
    status = set_condition(status, BLOCKED, False, RESIZING, "", situation.now)  # nothing is made until all have ended
    draft.status = count_tasks(status, situation.views).expecting_no_pods()
    draft.look_again(*(facts_of(pod).lost_at for pod in pods))


def is_over(situation: Situation) -> bool:
    """Whether no pod of the group that is to end can train any more."""
    return all(ended(pod) or is_lost(pod, situation.now) for pod in _of_the_group(situation))


def start_group(draft: Draft, change: Resizing) -> None:
    """Begin a group of the size that was decided, or a smaller one if the spec says so by now, and tell users."""
    situation, workers = draft.situation, _workers(draft.status)
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
    situation, workers, attempts = draft.situation, _workers(draft.status), draft.status.internal.attempts
    group = {view.task for view in _group(situation)}
    stays = {view.task.id: view.attempt for view in situation.views if view.task not in group}
    new = Attempts(exceptions=stays, others=max((attempts.others, *attempts.exceptions.values())) + 1)
    workers = workers.but(replicas=replicas, resizing=None, unschedulable_since=None, adjusted_time=adjusted)
    workers = workers.but(last_scale_time=whole(draft.now))
    draft.status = draft.status.but(workers=workers).remembering(attempts=new).expecting_no_pods()


def go_on_as_desired(draft: Draft) -> None:
    """Give a job that goes on after a suspension as many workers as its spec says and its queue has admitted. What
    there was room for before does not matter. Pods of the group before may still save, or nobody could delete them.
    Then that group ends first, as at any other change."""
    situation, workers = draft.situation, draft.situation.changing
    if workers is None or (workers.replicas == goal(situation, workers) and workers.resizing is None):
        return
    if is_over(situation):
        _begin_group(draft, goal(situation, workers), None)
    else:
        begin(draft, _as_wanted(situation, workers))


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
    if situation.changing is None:
        return []
    tasks, found = {view.task.id for view in situation.views}, []
    for pod in situation.children.owned_pods(situation.group_job):
        name, task = pod["metadata"]["name"], facts_of(pod).task_id or ""
        left_over = task.startswith(f"{Role.WORKER.value}-") and task not in tasks
        if (left_over or is_placeholder(name)) and not deleting(pod):
            found.append(Delete.of(pod, f"no worker of this group needs {name}", surplus=True))
    return found


def was_resized_last(status: Status) -> bool:
    """Whether training was last started anew for another number of workers, and not over a failure."""
    workers, incident = status.workers, status.internal.incident
    if workers is None or workers.last_scale_time is None:
        return False
    return incident is None or incident.started_at < workers.last_scale_time


def _workers(status: Status) -> Workers:
    """The workers of a job that has some."""
    assert status.workers is not None
    return status.workers


def _group(situation: Situation) -> list[TaskView]:
    """The tasks that end together: all that train, and an evaluator that has to go where the chief goes."""
    follows = topology.evaluator_follows_chief(situation.group_job)
    return [view for view in situation.views if follows or not view.evaluates]


def _of_the_group(situation: Situation) -> list[Manifest]:
    return [pod for view in _group(situation) for pod in view.pods]
