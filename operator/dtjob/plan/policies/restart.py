"""Restarts: which tasks get a new attempt, what that costs, and when the job has failed for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dtjob.api.job import Job
from dtjob.api.replicas import Role
from dtjob.api.strategy import Strategy
from dtjob.objects import topology
from dtjob.objects.topology import Task
from dtjob.plan.children import PodState, TaskView, finished, terminated
from dtjob.plan.policies import incident as incidents
from dtjob.plan.policies.failure_cause import Cause, Failure, failure_of, vanished
from dtjob.plan.policies.incident import Incident
from dtjob.times import parse

SETTLE = timedelta(seconds=2)
"""Without a supervisor one death takes the whole group down; wait this long for the pod that died first to show
itself."""


@dataclass(frozen=True)
class Decision:
    """What to do about failed tasks.

    `replaced` get a new attempt. `incident` and `first` are the incident they belong to and its first cause, `new`
    whether it begins here. `gives_up` says why the job fails instead. `look_again_at` is when a waiting decision is
    due.
    """

    replaced: tuple[Task, ...] = ()
    incident: Incident | None = None
    first: Failure | None = None
    new: bool = False
    previous_cause: Cause | None = None
    gives_up: str = ""
    look_again_at: datetime | None = None


def failures(job: Job, views: list[TaskView], all_were_created: bool, now: datetime) -> list[Failure]:
    """Every failed current attempt. A pod that is missing although all pods had been created was deleted unseen."""
    found = []
    for view in views:
        if view.pod is not None:
            failure = failure_of(view.task, view.pod, now)
        elif all_were_created:
            failure = vanished(view.task, topology.pod_name(job, view.task, view.attempt), now)
        else:
            failure = None
        if failure is not None:
            found.append(failure)
    return found


def restart_training(
    job: Job,
    views: list[TaskView],
    failed: list[Failure],
    previous: Incident | None,
    checkpoint_step: int,
    now: datetime,
) -> Decision:
    """Decide about failed training tasks. The evaluator's failures are `restart_evaluator`'s."""
    failed = [failure for failure in failed if failure.task.role is not Role.EVALUATOR]
    if not failed:
        needed = finished_without_the_chief(job, views, now)
        if previous is None or not needed:
            return Decision()
        return Decision(needed, previous, previous_cause=previous.cause)
    first = _first(failed)
    replaced = replacement_group(job, views, [failure.task for failure in failed], now)
    # The time is the node's; a clock that is ahead of ours must not hold the restart back.
    just_now = -SETTLE <= now - first.time < SETTLE
    if len(replaced) > len(failed) and first.cause is Cause.ERROR and just_now:
        return Decision(look_again_at=first.time + SETTLE)
    attempts = {view.task: view.attempt for view in views}
    fresh = [one for one in failed if previous is None or not previous.holds(one.task.id, attempts[one.task], now)]
    if previous is not None and not fresh:
        incident = incidents.joined(previous, first.cause)
        stronger = first if incident.cause is not previous.cause else None
        return Decision(replaced, incident, stronger, previous_cause=previous.cause)
    first = _first(fresh)
    policy = job.spec.failure_policy
    at = {task.id: attempt for task, attempt in attempts.items() if attempt}
    incident = incidents.next_incident(previous, first.cause, checkpoint_step, at, policy.backoff, now)
    if incident.charged > policy.max_restarts:
        return Decision(incident=incident, first=first, new=True, gives_up=_gave_up(job, first, checkpoint_step))
    return Decision(replaced, incident, first, new=True)


def restart_evaluator(
    job: Job, views: list[TaskView], failed: list[Failure], replaced: Sequence[Task], now: datetime
) -> Decision:
    """Replace a failed evaluator, or one that must go where the chief goes, which is then no failure and has no
    `first`. `replaced` are the training tasks that are replaced now. Training does not care, so nothing is charged.

    The wait grows with its attempts and counts from the start of the failed one: not every failure has a time (an
    eviction, a lost node), and one that ran longer than the wait need not wait again. A vanished one has no start.
    """
    if topology.chief_task(job) in replaced and topology.evaluator_follows_chief(job):
        # It holds the volume on the old chief's node until it has ended. One that is missing may be on its way there.
        views_of_it = [view for view in views if view.task.role is Role.EVALUATOR]
        follows = tuple(view.task for view in views_of_it if view.pod is None or not finished(view.pod))
        if follows:
            return Decision(replaced=follows)
    for failure in failed:
        if failure.task.role is Role.EVALUATOR:
            view = next(view for view in views if view.task == failure.task)
            if view.pod is not None:
                wait = incidents.wait_before(view.attempt + 1, job.spec.failure_policy.backoff)
                due = parse(view.pod["metadata"]["creationTimestamp"]) + wait
                if now < due:
                    return Decision(look_again_at=due)
            return Decision(replaced=(failure.task,), first=failure)
    return Decision()


def replacement_group(job: Job, views: list[TaskView], failed: list[Task], now: datetime) -> tuple[Task, ...]:
    """The tasks that need a new pod when `failed` have died (design, section 4).

    With our supervisor the survivors start again inside their containers; without it, a MultiWorkerMirrored group can
    never re-form in the same process, and a ParameterServer chief cannot outlive a ps. A MultiWorkerMirrored task
    that has finished already is needed again, since its peers' collectives wait for it.
    """
    strategy, supervised = job.spec.strategy, job.spec.program is not None
    group = set(failed)
    for view in views:
        if view.task.role is Role.EVALUATOR:
            continue
        if strategy is Strategy.MULTI_WORKER_MIRRORED and (not supervised or view.state(now) is PodState.SUCCEEDED):
            group.add(view.task)
    if strategy is Strategy.PARAMETER_SERVER and not supervised and any(task.role is Role.PS for task in failed):
        group.add(topology.chief_task(job))
    return tuple(view.task for view in views if view.task in group)


def finished_without_the_chief(job: Job, views: list[TaskView], now: datetime) -> tuple[Task, ...]:
    """Tasks that finished before the current chief was made, which waits for them to train on (see
    `replacement_group`): they ended just after their chief's end was judged a failure."""
    if job.spec.strategy is not Strategy.MULTI_WORKER_MIRRORED or job.spec.program is None:
        return ()
    chief = next(view for view in views if view.task == topology.chief_task(job))
    if chief.state(now) is PodState.SUCCEEDED:
        return ()
    made_at = parse(chief.pod["metadata"]["creationTimestamp"]) if chief.pod else now
    found = []
    for view in views:
        if view.pod is not None and view.task.role is not Role.EVALUATOR and view.state(now) is PodState.SUCCEEDED:
            finished_at = (terminated(view.pod) or {}).get("finishedAt")
            if chief.pod is None or (finished_at and parse(finished_at) <= made_at):
                found.append(view.task)
    return tuple(found)


def trains_without(job: Job, absent: Sequence[Task]) -> bool:
    """Whether training goes on while these tasks are away: a ParameterServer chief hands the steps to other workers."""
    replica = job.spec.replicas.worker
    workers = replica.count if replica else 0
    only_workers = all(task.role is Role.WORKER for task in absent)
    return job.spec.strategy is Strategy.PARAMETER_SERVER and only_workers and len(absent) < workers


def _first(failed: list[Failure]) -> Failure:
    """The first cause: by kind, then by time."""
    return min(failed, key=lambda failure: (failure.cause.precedence, failure.time))


def _gave_up(job: Job, first: Failure, checkpoint_step: int) -> str:
    budget = job.spec.failure_policy.max_restarts
    if budget == 0:
        return f"{first.sentence()}; failurePolicy.maxRestarts is 0, so training was not restarted"
    progress = f", with no checkpoint newer than step {checkpoint_step}" if checkpoint_step >= 0 else ""
    return f"{first.sentence()}; failurePolicy.maxRestarts ({budget}) is used up{progress}"
