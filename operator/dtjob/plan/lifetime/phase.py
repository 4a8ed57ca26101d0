# SPDX-License-Identifier: Apache-2.0
"""Phase: the phase of a job that has not ended, with its reason and message. If neither the job nor the operator names
an image, the job waits for one."""

from dtjob import times
from dtjob.api.phase import Phase
from dtjob.api.status.status import Status
from dtjob.objects.defaults import IMAGE_MISSING, MISSING_IMAGE_MESSAGE, image_of
from dtjob.objects.placeholder import is_placeholder
from dtjob.plan.diagnosis.pending import slow_start, unbound_claim, waiting_reason
from dtjob.plan.diagnosis.reachability import UNREACHABLE, why_unreached
from dtjob.plan.elastic import RESIZED, was_resized_last
from dtjob.plan.failure.budget import restarts
from dtjob.plan.failure.decisions import trains_without
from dtjob.plan.lifetime.ending import deadlines
from dtjob.plan.pods import why_the_chief_waits
from dtjob.plan.record.status import (
    BLOCKED,
    CANNOT_CREATE,
    CREATED,
    PhaseStatus,
    ran_before,
    say_instead,
    set_condition,
    set_phase,
)
from dtjob.plan.seen.children import PodState, count_tasks
from dtjob.plan.seen.situation import Draft, Situation

ALL_RUNNING, WORKERS_MISSING = "AllTasksRunning", "WorkersMissing"
"""Reasons of Running: every task that trains runs or has finished; or ParameterServer trains on without some
workers."""


def current_phase(situation: Situation) -> PhaseStatus:
    """The phase: Running if all that training needs runs. Pending before that, and Restarting if something of it
    stopped."""
    status, waits = situation.status, why_the_chief_waits(situation) or waiting_reason(situation.views, with_place=True)
    waits = "; ".join(filter(None, (waits or slow_start(situation), unbound_claim(situation))))
    absent = [view.task for view in situation.training if not view.up]
    ran = ran_before(status)
    if not absent and (unreached := why_unreached(situation)):
        return PhaseStatus(Phase.RUNNING, UNREACHABLE, unreached)
    if not absent:
        return PhaseStatus(Phase.RUNNING, ALL_RUNNING, waits or why_the_start_waits(situation))
    if ran and trains_without(situation.group_job, absent):
        return PhaseStatus(Phase.RUNNING, WORKERS_MISSING, waits)
    if ran and was_resized_last(status):
        what = "1 task of the new group does" if len(absent) == 1 else f"{len(absent)} tasks of the new group do"
        return PhaseStatus(Phase.RESTARTING, RESIZED, waits or f"{what} not run yet")
    if ran or restarts(status, situation.now):
        first = status.last_failure
        reason = first.cause if first and first.cause else Phase.RESTARTING.value
        return PhaseStatus(Phase.RESTARTING, reason, waits or _cause(situation))
    return PhaseStatus(Phase.PENDING, "WaitingForPods", waits)


def note_phase(draft: Draft, *, settles: bool) -> None:
    """Set phase, conditions and counts. Users are told if the job has just become blocked. `settles`: something has
    just failed, and what to do is decided in a moment."""
    situation, now, status = draft.situation, draft.now, draft.status
    problems = {what: why for what, why in situation.children.problems.items() if not is_placeholder(what)}
    blocked = "; ".join(f"{what}: {why}" for what, why in sorted(problems.items())[:3])
    # A failure is judged by how long all tasks ran before it. So the phase stays Running until the decision.
    if not (settles and status.phase is Phase.RUNNING):
        status = set_phase(status, *current_phase(situation), now)
        if status.phase is Phase.RUNNING and status.active is not None:
            status = status.but(active=status.active.all_run(now))
    status = set_condition(status, BLOCKED, bool(blocked), CANNOT_CREATE if blocked else CREATED, blocked, now)
    status = _remember_made(situation, count_tasks(status, situation.views))
    if blocked and draft.status.reason != CANNOT_CREATE:
        draft.add_event("Warning", BLOCKED, blocked)
    draft.status = say_instead(status, CANNOT_CREATE, blocked) if blocked else status


def _remember_made(situation: Situation, status: Status) -> Status:
    """Remember which attempts have had their pods: one of these that is missing later was deleted."""
    missing = [view.task.id for view in situation.views if view.state is PodState.MISSING]
    never = [id_ for id_ in missing if not status.internal.had_pod(id_)]
    made = None
    if missing and len(never) < len(situation.views):
        made = status.internal.attempts.bumped(never, (view.task.id for view in situation.views), by=-1)
    return status.remembering(all_created=not missing, made_before=made)


def _cause(situation: Situation) -> str:
    """What failed first, and when the next start is if that is not yet."""
    first, incident = situation.status.last_failure, situation.status.internal.incident
    failed = f"{first.task} {first.message}" if first else "a task failed"
    if incident is None or situation.now >= incident.not_before:
        return failed
    return f"{failed}; the next start is at {times.rfc3339(incident.not_before)} (failurePolicy.backoff)"


def why_the_start_waits(situation: Situation) -> str:
    """What the chief's training process waits for while it starts (contract.md: `message`); empty if nothing."""
    report = situation.chief_report
    message = report.get("message", "")
    return f"{situation.chief.task.id} says: {message}" if message and report.get("state") == "starting" else ""


def keep_image(draft: Draft) -> None:
    """Keep in the status which default image the job began with."""
    job = draft.situation.group_job
    if job.spec.image is None and (image := image_of(job, draft.situation.defaults)):
        draft.status = draft.status.but(image=image)


def wait_for_image(draft: Draft) -> None:
    """Start nothing, and say which field to write. An operator with a default image goes on from here."""
    views, now = draft.situation.views, draft.now
    if draft.status.reason != IMAGE_MISSING:
        draft.add_event("Warning", IMAGE_MISSING, MISSING_IMAGE_MESSAGE)
    status = set_phase(draft.status, Phase.PENDING, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, now)
    status = set_condition(status, BLOCKED, True, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, now)
    draft.look_again(*deadlines(draft.situation))
    draft.status = count_tasks(status, views).but(ready=f"0/{len(views)}")
