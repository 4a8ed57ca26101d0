# SPDX-License-Identifier: Apache-2.0
"""`plan`: from what a job should be and what is observed to what to do now. Pure; the heart of dtjob.

One call decides everything about one job, as the Kubernetes Job controller's syncJob does: nothing depends on how the
state came about. The new status is written before any action, but for the first objects of a new job (`order.py`). So
a crash at any point only repeats calls that are safe to repeat.
"""

from datetime import datetime, timedelta

from dtjob.api.job import Job
from dtjob.objects import kueue
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, lacks_image
from dtjob.plan import data_workers, elastic, pods
from dtjob.plan.actions import Create, Plan
from dtjob.plan.diagnosis import checkpoints, pending, reachability
from dtjob.plan.failure import restart
from dtjob.plan.failure.budget import note_end, only_the_end_differs
from dtjob.plan.failure.crashes import note_crashes
from dtjob.plan.failure.decisions import GiveUp, TrainingDecision, Wait, replaced, write_ahead
from dtjob.plan.failure.lost_peers import explain
from dtjob.plan.failure.same_mistake import note_first_step
from dtjob.plan.lifetime import ending, phase, suspension
from dtjob.plan.lifetime.time_spent import with_goodput
from dtjob.plan.order import only_counts
from dtjob.plan.queueing.queueing import keep_workload, queueing
from dtjob.plan.record.incidents import note_recovery
from dtjob.plan.seen.children import Children, facts_of
from dtjob.plan.seen.progress import next_write, only_progress_differs
from dtjob.plan.seen.situation import Draft, Situation

LOOK_AT_LEAST_EVERY = timedelta(minutes=5)
"""A timer does not notice that the clock was set; so a job that waits for a moment is looked at that often."""

ASK_AGAIN = timedelta(seconds=10)
"""What has lost its label, and no watch shows, is asked for by its name again."""


def plan(job: Job, children: Children, now: datetime, defaults: Defaults = NO_DEFAULTS) -> Plan:
    """What to do for `job` now, given what is observed of its children. `defaults` are for what the job leaves out.

    Idempotent: planning again on the plan's own outcome gives nothing more to do. Touches only objects whose
    controller is this very job (by uid). Raises Unread where something has to be read first.
    """
    if not job.spec.is_ours:
        return keep_workload(job, children, now, defaults)
    draft = Draft(Situation.of(job, children, now, defaults))
    not_admitted = queueing(draft)
    _decide(draft, not_admitted)
    if draft.status.ended:
        ending.after_the_end(draft, has_quota=not_admitted is None)
    return _frozen(draft)


def _decide(draft: Draft, not_admitted: suspension.Pause | None) -> None:
    """Decide about a job, from top to bottom. Each step either returns or leaves the job to the steps below it.

    - not_admitted: why the queue of the job lets it have no pods. None if it may have pods.
    """
    if draft.status.ended:
        return
    pause = suspension.BY_USER if suspension.is_suspended(draft.situation) else not_admitted
    if pause is not None and not ending.succeeded(draft.situation):
        pods.find_vanished(draft.situation)
        suspension.suspend(draft, pause)
        draft.do(pods.release_gang(draft.situation))
        return
    suspension.go_on(draft)
    if lacks_image(draft.situation.group_job, draft.situation.defaults):
        if late := ending.overdue(draft.situation):
            ending.fail(draft, late)
        else:
            phase.wait_for_image(draft)
        return
    _note_what_is_observed(draft)
    if ending.succeeded(draft.situation):
        ending.succeed(draft)
        write_ahead(draft, ending.leave_the_chief(draft.situation))
        return
    pods.find_vanished(draft.situation)
    if late := ending.overdue(draft.situation):
        ending.fail(draft, late)
        return
    _train(draft)


def _train(draft: Draft) -> None:
    """Decide about a job that is to train: restart what failed, change the size of its group, make what is missing."""
    training: TrainingDecision = None
    data = data_workers.views_of(draft.situation)
    if draft.situation.resizing is None:
        training = _restart_what_failed(draft)
        if isinstance(training, GiveUp):
            ending.fail(draft, training)
            return
        elastic.note_room(draft)
        if training is None and (due := elastic.resize_due(draft.situation)):
            elastic.begin(draft, due)
    if (change := draft.situation.resizing) is not None:
        if not elastic.is_over(draft.situation):
            elastic.end_group(draft, change)
            data_workers.count(draft, data)
            draft.do(elastic.look_for_room(draft.situation))
            _look_again_in_time(draft)
            return
        elastic.start_group(draft, change)
    pods.find_earlier_chiefs(draft)
    draft.do((*pods.converge(draft.situation), *elastic.look_for_room(draft.situation)))
    data_workers.keep(draft, data)
    _look_again_in_time(draft)
    phase.note_phase(draft, settles=isinstance(training, Wait) and training.then_fails is None)
    data_workers.count(draft, data)
    draft.status = note_recovery(draft.status, draft.now)
    reachability.say_reachability(draft)
    reachability.note_unreached(draft)
    pending.look_at_slow_starts(draft)
    pods.look_for_config_map(draft)


def _note_what_is_observed(draft: Draft) -> None:
    """Write into the status what the pods and the supervisors tell, and what the job began with."""
    phase.keep_image(draft)
    pods.note_gang(draft)
    checkpoints.say_whether_checkpoints_are_kept(draft)
    note_crashes(draft)
    checkpoints.note_restored(draft)
    note_first_step(draft)


def _restart_what_failed(draft: Draft) -> TrainingDecision:
    """Give new attempts to what has failed, and to what is needed with it. The decision about the tasks that train."""
    draft.status = note_end(draft.status, draft.now)
    why = explain(draft.situation)
    if (end := restart.end_over(draft.situation, why)) is not None:
        return end
    write_ahead(draft, why)
    failed = restart.failures(draft.situation)
    training = restart.restart_training(draft.situation, failed)
    if isinstance(training, GiveUp):
        return training
    evaluator = restart.restart_evaluator(draft.situation, failed, replaced(training))
    write_ahead(draft, training)
    write_ahead(draft, evaluator)
    return training


def _look_again_in_time(draft: Draft) -> None:
    """Note the moments at which a plan can change though nothing happened."""
    situation, incident = draft.situation, draft.status.internal.incident
    draft.look_again(incident.not_before if incident else None)
    draft.look_again(*(facts_of(pod).lost_at for view in situation.views for pod in view.pods))
    draft.look_again(*ending.deadlines(situation), *elastic.elastic_changes_at(situation))


def _frozen(draft: Draft) -> Plan:
    """The plan of this draft. It has no status if that did not change, or only by progress and soon after the last."""
    situation, now, written = draft.situation, draft.now, draft.situation.written
    status = elastic.at_rest(situation)
    actions, at_once = draft.actions, False
    if status.ended and not written.ended:  # of a job that ends no Workload is made; its own is told at the next look
        actions = [one for one in actions if not (isinstance(one, Create) and one.kind == kueue.KIND)]
        at_once = status.queue is not None
    if situation.children.unlisted("Pod", kueue.KIND):
        draft.look_again(now + ASK_AGAIN)
    later = [moment for moment in draft.times if moment is not None and moment > now]
    write = status != written and not only_the_end_differs(status, written)
    if write and only_progress_differs(status, written):
        may_write = next_write(written.progress, situation.defaults.progress_every, now)
        if may_write is not None and now < may_write:
            write, later = False, [*later, may_write]
    due = min((*later, now + LOOK_AT_LEAST_EVERY)) if later else None
    return Plan(
        actions=tuple(actions),
        status=with_goodput(situation, status).to_json() if write else None,
        events=tuple(draft.events),
        look_again_at=now if at_once else due,
        only_counts=write and only_counts(status, written, pending.slow_start(situation)),
        events_of=draft.events_of,
        unless_there=draft.unless_there,
    )
