"""`plan`: from what a job should be and what is observed to what to do now. Pure; the heart of dtjob.

One call decides everything about one job, as the Kubernetes Job controller's syncJob does: nothing depends on how the
state came about. The new status is written before any action, but for the first objects of a new job (`urgency.py`); so
a crash at any point only repeats calls that are safe to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.objects.defaults import IMAGE_MISSING, MISSING_IMAGE_MESSAGE, NO_DEFAULTS, Defaults, image_of, lacks_image
from dtjob.objects.placeholder import is_placeholder
from dtjob.plan.actions import Action, Event, Plan
from dtjob.plan.elastic.resize import begin, end_group, is_over, look_for_room, start_group
from dtjob.plan.elastic.room import at_rest, elastic_changes_at, note_room, resize_due
from dtjob.plan.failure.budget import note_end, only_the_end_differs
from dtjob.plan.failure.crashes import note_crashes
from dtjob.plan.failure.decisions import EvaluatorDecision, GiveUp, Nothing, TrainingDecision, Wait, replaced
from dtjob.plan.failure.lost_peers import explain
from dtjob.plan.failure.restart import end_over, failures, restart_evaluator, restart_training
from dtjob.plan.failure.same_mistake import note_first_step
from dtjob.plan.lifetime.cleanup import pods_to_remove
from dtjob.plan.lifetime.deadlines import Overdue, deadline_changes_at, note_all_ran, overdue
from dtjob.plan.lifetime.last_evaluation import (
    deadline,
    evaluate_last,
    evaluates_after_all,
    evaluator_left,
    keeps_account,
    leave_the_chief,
)
from dtjob.plan.lifetime.phase import standing
from dtjob.plan.lifetime.success import succeeded, words_of_success
from dtjob.plan.lifetime.suspension import BY_USER, Pause, go_on, is_suspended, suspend
from dtjob.plan.lifetime.time_spent import with_goodput
from dtjob.plan.lifetime.time_to_live import deletion
from dtjob.plan.pods.convergence import converge, converge_evaluator
from dtjob.plan.pods.gang import note_gang, release_gang, release_outgrown
from dtjob.plan.pods.one_chief import when_its_node_counts_as_lost
from dtjob.plan.pods.relabel import lost_labels
from dtjob.plan.pods.unseen import find_earlier_chiefs, find_vanished
from dtjob.plan.queueing.queueing import queueing
from dtjob.plan.queueing.remote import keep_workload
from dtjob.plan.queueing.step import joined
from dtjob.plan.record.conditions import BLOCKED, CANNOT_CREATE, CREATED, EVALUATION_GIVEN_UP
from dtjob.plan.record.status import confirm_phase, say_instead, set_condition, set_phase
from dtjob.plan.seen.children import Children, PodState, lost_at
from dtjob.plan.seen.counts import count_tasks
from dtjob.plan.seen.progress import next_write, only_progress_differs
from dtjob.plan.seen.situation import Situation
from dtjob.plan.telling.checkpoints_kept import say_whether_checkpoints_are_kept
from dtjob.plan.telling.reachability import nothing_to_reach, reachability_changes_at, say_reachability
from dtjob.plan.telling.restored import note_restored
from dtjob.plan.telling.slow_start import events_to_read, slow_start_changes_at
from dtjob.plan.telling.unreached import tell_unreached, unreached_changes_at
from dtjob.plan.urgency import only_counts
from dtjob.plan.write_ahead import write_ahead


def plan(job: Job, children: Children, now: datetime, defaults: Defaults = NO_DEFAULTS) -> Plan:
    """What to do for `job` now, given what is observed of its children. `defaults` are for what the job leaves out.

    Idempotent: planning again on the plan's own outcome gives nothing more to do. Touches only objects whose
    controller is this very job (by uid). Raises Unread where something has to be read first.
    """
    if not job.spec.is_ours:
        return keep_workload(job, children, now, defaults)
    situation, queued = queueing(Situation.of(job, children, now, defaults))
    return joined(_decide(situation, queued.pause), queued, situation)


def _decide(situation: Situation, queued: Pause | None) -> Plan:
    """What to do for a job that is ours. `queued` is why its queue lets it have no pods; None where it may have
    them."""
    if situation.status.ended:
        return _after_the_end(situation, may_evaluate=queued is None)
    pause = BY_USER if is_suspended(situation) else queued
    if pause is not None and not succeeded(situation):
        find_vanished(situation)
        situation, away, told = suspend(situation, pause)
        return _finish(situation, [*away, *release_gang(situation)], told, [])
    return _active(*go_on(situation), may_evaluate=queued is None)


def _active(situation: Situation, resumed: Iterable[Event], may_evaluate: bool) -> Plan:
    """A job that is to be active. `resumed` is what users are told where it was suspended until now. Without
    `may_evaluate` its queue lets it have no pods any more, be it that it has succeeded."""
    if lacks_image(situation.group_job, situation.defaults):
        return _without_image(situation, resumed)
    situation, replaced_group = note_gang(_with_image(situation))
    situation, kept = say_whether_checkpoints_are_kept(situation)
    situation, restored = note_restored(situation)
    situation, crashed = note_crashes(situation)
    situation = note_first_step(situation)
    told = [*resumed, *replaced_group, *kept, *crashed, *restored]
    if succeeded(situation):
        return _succeed(situation, told, may_evaluate)
    find_vanished(situation)
    if late := overdue(situation):
        return _cut_off(situation, late, told)
    if situation.status.workers and situation.status.workers.resizing:
        return _resize(situation, told)
    return _go_on(situation, told)


def _go_on(situation: Situation, told: Iterable[Event]) -> Plan:
    """Replace what has failed, and make what is not there. `told` is what users are told already."""
    situation = situation.with_status(note_end(situation.status, situation.now))
    why = explain(situation)
    if (end := end_over(situation, why)) is not None:
        return _give_up(situation, end, told)
    situation, explained = write_ahead(situation, why)
    failed = failures(situation)
    training = restart_training(situation, failed)
    if isinstance(training, GiveUp):
        return _give_up(situation, training, told)
    evaluator = restart_evaluator(situation, failed, replaced(training))
    situation, restarts = write_ahead(situation, training)
    situation, evaluator_restarts = write_ahead(situation, evaluator)
    situation = note_room(situation)
    if isinstance(training, Nothing) and (change := resize_due(situation)):
        situation, begun = begin(situation, change)
        return _resize(situation, [*told, *explained, *evaluator_restarts, *begun])
    events = [*told, *explained, *restarts, *evaluator_restarts]
    settles = isinstance(training, Wait) and training.over is None
    return _bring_about(situation, events, _times_to_look(situation, training, evaluator), settles)


def _resize(situation: Situation, told: Iterable[Event]) -> Plan:
    """A group of another number of workers is to come: this one ends, and that is made once it has ended."""
    if not is_over(situation):
        situation, ending, due = end_group(situation)
        away = [*ending, *release_outgrown(situation), *look_for_room(situation)]
        return _finish(situation, away, told, [*due, *_times_to_look(situation)])
    situation, resized = start_group(situation)
    return _bring_about(situation, [*told, *resized], _times_to_look(situation))


def _bring_about(
    situation: Situation, told: Iterable[Event], due: Iterable[datetime | None], settles: bool = False
) -> Plan:
    """Take away what is superseded, and make what is not there. `due` are moments at which to look again. `settles`:
    something has failed just now, and what is decided in a moment."""
    find_earlier_chiefs(situation)
    relabels, relabelled = lost_labels(situation)
    actions = [*relabels, *converge(situation), *look_for_room(situation)]
    situation, blocked = _describe(situation, settles)
    situation, unreachable = say_reachability(situation)
    unreachable += tell_unreached(situation)
    made = _finish(situation, actions, [*told, *relabelled, *blocked, *unreachable], due)
    return replace(made, events_of=events_to_read(situation))


def _with_image(situation: Situation) -> Situation:
    """Keep in the status which default image the job began with."""
    job, image = situation.group_job, image_of(situation.group_job, situation.defaults)
    if job.spec.image is not None or not image:
        return situation
    return situation.with_status(situation.status.but(image=image))


def _without_image(situation: Situation, resumed: Iterable[Event]) -> Plan:
    """Start nothing, and say which field to write; an operator with a default image goes on from here."""
    if late := overdue(situation):
        return _cut_off(situation, late, resumed)
    told = situation.status.reason == IMAGE_MISSING
    status = set_phase(situation.status, Phase.PENDING, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, situation.now)
    status = set_condition(status, BLOCKED, True, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, situation.now)
    status = count_tasks(status, situation.views).but(ready=f"0/{len(situation.views)}")
    events = [] if told else [Event("Warning", IMAGE_MISSING, MISSING_IMAGE_MESSAGE)]
    return _finish(situation.with_status(status), [], [*resumed, *events], [deadline_changes_at(situation)])


def _succeed(situation: Situation, told: Iterable[Event], may_evaluate: bool) -> Plan:
    message, warned = words_of_success(situation)
    status = set_phase(situation.status, Phase.SUCCEEDED, "Completed", message, situation.now)
    situation = situation.with_status(status)
    situation, moved = write_ahead(situation, leave_the_chief(situation))
    ended = Event("Normal", Phase.SUCCEEDED.value, "Training has ended")
    return _after_the_end(situation, [*told, ended, *warned, *moved], may_evaluate)


def _give_up(situation: Situation, decision: GiveUp, told: Iterable[Event]) -> Plan:
    status = situation.status.but(first_failure=decision.first.in_status())
    status = set_phase(status, Phase.FAILED, decision.reason, decision.why, situation.now)
    failed = Event("Warning", Phase.FAILED.value, decision.why)
    return _after_the_end(situation.with_status(status), [*told, failed])


def _cut_off(situation: Situation, late: Overdue, told: Iterable[Event]) -> Plan:
    """A deadline ends the job."""
    status = set_phase(situation.status, Phase.FAILED, late.reason, late.message, situation.now)
    return _after_the_end(situation.with_status(status), [*told, Event("Warning", late.reason, late.message)])


def _after_the_end(situation: Situation, events: Iterable[Event] = (), may_evaluate: bool = True) -> Plan:
    """An ended job only gives up its pods; of one that has succeeded, the evaluator first does what is left to it."""
    decision = evaluate_last(situation)
    situation, told = write_ahead(situation, decision)
    evaluator, status = evaluator_left(situation), situation.status
    may_evaluate = may_evaluate and not situation.group_job.spec.suspend
    made = converge_evaluator(situation, evaluator) if evaluator and may_evaluate else []
    if evaluates_after_all(situation):
        status = set_condition(status, EVALUATION_GIVEN_UP, False, "EvaluatorAtWork", "", situation.now)
    counted = count_tasks(status, situation.views)
    status = counted if keeps_account(situation) else counted.remembering(finished=status.internal.finished)
    if status.phase is Phase.SUCCEEDED:  # it keeps what trained it, though its pods may be removed
        ready = situation.status.ready if situation.written.ended else status.ready
        status = status.but(ready=ready)
    status = set_condition(status, BLOCKED, False, "JobEnded", "", situation.now)
    status = nothing_to_reach(status, "JobEnded", situation.now)
    if status.observed_generation != situation.written.observed_generation:
        status = confirm_phase(status)
    removed, look_again_at = pods_to_remove(situation)
    deleted, due_at = deletion(situation, lingers=look_again_at is not None)
    due = [look_again_at, decision.until if isinstance(decision, Wait) else None, deadline(situation), due_at]
    due += [lost_at(pod) for view in situation.views for pod in view.pods]
    return _finish(
        situation.with_status(status), [*made, *removed, *release_gang(situation), *deleted], [*events, *told], due
    )


def _describe(situation: Situation, settles: bool) -> tuple[Situation, list[Event]]:
    """Set phase, conditions and counts; the event is for a job that has just become blocked."""
    now, status = situation.now, situation.status
    problems = {what: why for what, why in situation.children.problems.items() if not is_placeholder(what)}
    blocked = "; ".join(f"{what}: {why}" for what, why in sorted(problems.items())[:3])
    # What has just failed is judged by how long all ran before it, which the phase still says.
    if not (settles and status.phase is Phase.RUNNING):
        status = note_all_ran(situation, set_phase(status, *standing(situation), now))
    status = set_condition(status, BLOCKED, bool(blocked), CANNOT_CREATE if blocked else CREATED, blocked, now)
    all_created = all(view.state is not PodState.MISSING for view in situation.views)
    status = count_tasks(status, situation.views)
    if all_created is not status.internal.all_created:
        status = status.remembering(all_created=all_created)
    if not blocked:
        return situation.with_status(status), []
    told = [] if situation.status.reason == CANNOT_CREATE else [Event("Warning", BLOCKED, blocked)]
    return situation.with_status(say_instead(status, CANNOT_CREATE, blocked)), told


def _times_to_look(situation: Situation, *decisions: TrainingDecision | EvaluatorDecision) -> list[datetime | None]:
    """Moments at which a plan can change though nothing happened."""
    waits = [decision.until for decision in decisions if isinstance(decision, Wait)]
    incident = situation.status.internal.incident
    lost = [lost_at(pod) for view in situation.views for pod in view.pods]
    lost += [when_its_node_counts_as_lost(situation), reachability_changes_at(situation)]
    lost += [unreached_changes_at(situation), slow_start_changes_at(situation)]
    lost += [deadline_changes_at(situation), elastic_changes_at(situation)]
    return [*waits, incident.not_before if incident else None, *lost]


def _finish(
    situation: Situation, actions: Iterable[Action], events: Iterable[Event], due: Iterable[datetime | None]
) -> Plan:
    """Leave the status out where it did not change, or only by progress that was written just now."""
    status, written, now = at_rest(situation.group_job, situation.status), situation.written, situation.now
    later = [moment for moment in due if moment is not None and moment > now]
    write = status != written
    write = write and not only_the_end_differs(status, written)
    if write and only_progress_differs(status, written):
        may_write = next_write(written.progress, situation.defaults.progress_every, now)
        if may_write is not None and now < may_write:
            write, later = False, [*later, may_write]
    told = with_goodput(situation, status).to_json() if write else None
    due_next = min(later, default=None)
    return Plan(tuple(actions), told, tuple(events), due_next, only_counts=write and only_counts(status, written))
