# SPDX-License-Identifier: Apache-2.0
"""Suspension: a job gives up its pods, and later continues at its last checkpoint.

The words are those of batch/v1. Pods are deleted, which is SIGTERM to all at once, and within their grace period they
save (contract.md). They keep their Service meanwhile, as they save together. Nothing is counted or charged for it:
what ends while a job is suspended is no failure. When it goes on, each task gets a new attempt. So no pod of the time
before, which may still be ending somewhere, is taken for its own.
"""

from dataclasses import dataclass

from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.activity import Activity
from dtjob.api.status.status import Status
from dtjob.plan import data_workers
from dtjob.plan.actions import Delete
from dtjob.plan.diagnosis.checkpoints import checkpoints_end, goes_on_from
from dtjob.plan.diagnosis.reachability import nothing_to_reach
from dtjob.plan.elastic import go_on_as_desired, strays
from dtjob.plan.failure.restart import replacement_group
from dtjob.plan.lifetime.ending import succeeded
from dtjob.plan.record.incidents import close_incident
from dtjob.plan.record.status import BLOCKED, SUSPENDED, bump_attempts, holds, ran_before, set_condition, set_phase
from dtjob.plan.seen.children import PodState, count_tasks, deleting, ended
from dtjob.plan.seen.situation import Draft, Situation

RESUMED = "Resumed"
"""Like `Suspended`, the reason of the event that a Job gets."""
JOB_SUSPENDED, JOB_RESUMED = "JobSuspended", "JobResumed"
"""Reasons of the condition, as a Job's."""
_SAVING = "the pods that are left save and end"


@dataclass(frozen=True)
class Pause:
    """Why a job has no pods for now: `reason` in one word, and `message` in words once none of its pods is left."""

    reason: str
    message: str
    event: str = "Job suspended"
    """What its condition and its event say."""
    cause: str = "spec.suspend is true"
    """What is said before it while pods are left."""


BY_USER = Pause(JOB_SUSPENDED, "spec.suspend is true: training goes on when that is false")


def is_suspended(situation: Situation) -> bool:
    """Whether the job is to have no pods now. One whose training has ended is past that."""
    return situation.group_job.spec.suspend and not situation.status.ended and not succeeded(situation)


def suspend(draft: Draft, pause: Pause = BY_USER) -> None:
    """Delete the pods of a job that is to have none, and say so in its status and to users."""
    situation, now, before = draft.situation, draft.now, close_incident(draft.status, draft.now)
    why = f"the job is suspended ({pause.cause})"
    pods = [*(pod for view in situation.views for pod in view.pods), *data_workers.pods_of(situation)]
    draft.do(Delete.of(pod, why) for pod in pods if not deleting(pod))
    draft.do(strays(situation))
    message = f"{pause.cause}: {_SAVING}" if any(not ended(pod) for pod in pods) else pause.message
    status = set_phase(before, Phase.SUSPENDED, pause.reason, message, now)
    status = set_condition(status, BLOCKED, False, pause.reason, "", now)
    status = nothing_to_reach(status, pause.reason, now)
    active = _activity(before)
    status = count_tasks(status, situation.views).but(
        start_time=before.start_time,  # none before it first goes on, as a Job's
        active=active.ended(now) if active else None,
    )
    if before.internal.made:
        status = status.expecting_no_pods()
    draft.status = status
    if not holds(before.conditions, SUSPENDED):
        draft.add_event("Normal", SUSPENDED, pause.event)


def go_on(draft: Draft) -> None:
    """Note that the job is active. One that was suspended until now gets new attempts, and users are told."""
    situation, now, before = draft.situation, draft.now, draft.status
    active = _activity(before)
    status = before.but(active=(active or Activity()).begun(now))
    if not holds(before.conditions, SUSPENDED):
        draft.status = status
        return
    status = set_condition(status, SUSPENDED, False, JOB_RESUMED, "Job resumed", now)
    everyone = [view.task for view in situation.views]
    if succeeded(situation):  # by what its pods did last; its evaluator may have been told to end half-way
        left = [view.task for view in situation.views if view.evaluates and view.state is not PodState.SUCCEEDED]
        draft.status = bump_attempts(status, left, everyone) if left else status
        return
    if active is None:  # it never had a pod
        draft.status = status
        go_on_as_desired(draft)
        draft.add_event("Normal", RESUMED, "Job resumed")
        return
    # Those that have not finished yet, and those that have finished and are needed again by them.
    left = [view.task for view in situation.views if view.state is not PodState.SUCCEEDED]
    trains = [task for task in left if task.role is not Role.EVALUATOR]
    needed = {*left, *(replacement_group(situation, trains) if trains else ())}
    tasks, step = [task for task in everyone if task in needed], before.checkpoint_step
    status = bump_attempts(status, tasks, everyone)
    if checkpoints_end(situation, tasks):
        status = status.but(checkpoint=None)
    where = f"; training goes on{goes_on_from(situation, tasks, step)}" if step >= 0 else ""
    draft.status = status
    go_on_as_desired(draft)
    draft.add_event("Normal", RESUMED, f"Job resumed{where}")


def _activity(status: Status) -> Activity | None:
    """The activity of the job; if the status has none, since its start. None if it never was active."""
    if status.active is not None or status.start_time is None:
        return status.active
    return Activity(since=status.start_time, all_ran_time=status.start_time if ran_before(status) else None)
