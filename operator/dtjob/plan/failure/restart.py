# SPDX-License-Identifier: Apache-2.0
"""Restarts: which tasks get a new attempt, which budget that uses up, and when the job fails for good.

The functions return decisions. `decisions.py` writes these into the status.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dtjob import times
from dtjob.api.spec.failure_policy import FailurePolicy
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.api.status.internal import Incident
from dtjob.objects import topology
from dtjob.objects.topology import Task
from dtjob.plan.failure.budget import belongs, next_incident, shows_its_cause, wait_before, with_another_failure
from dtjob.plan.failure.cause import failure_of, vanished
from dtjob.plan.failure.decisions import (
    EvaluatorDecision,
    GiveUp,
    GiveUpEvaluation,
    Renew,
    Restart,
    TrainingDecision,
    Wait,
)
from dtjob.plan.failure.lost_peers import first_cause, may_follow_from, repeated_errors, wait_for_late_reports
from dtjob.plan.failure.rules import BY_RULE, cannot_start, ruled
from dtjob.plan.failure.same_mistake import failed_for_good, mistake_of, program_failed
from dtjob.plan.failure.stalled import silent_stragglers, silent_tasks
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import PodState, TaskView, created_at, ended_at, facts_of
from dtjob.plan.seen.situation import Situation

SETTLE = timedelta(seconds=2)
"""Without a supervisor one death takes the whole group down; wait this long for the pod that died first to show
itself."""


def failures(situation: Situation) -> list[Failure]:
    """Every failed current attempt.

    If the pod of an attempt had been created and is missing, somebody deleted it. If a pod cannot start, it has failed
    where a rule says what to do about that.
    """
    found = (failure_at(situation, view) for view in situation.views)
    failed = [failure for failure in found if failure is not None]
    return [*failed, *cannot_start(situation, situation.views), *silent_tasks(situation)]


def failure_at(situation: Situation, view: TaskView) -> Failure | None:
    """The failure of the current attempt of a task. None if it has not failed. A missing pod counts as in
    `failures`."""
    if view.state is PodState.MISSING and situation.status.internal.had_pod(view.task.id):
        return vanished(view.task, topology.pod_name(situation.group_job, view.task, view.attempt), situation.now)
    return failure_of(view, situation.now)


def restart_training(situation: Situation, failed: Iterable[Failure]) -> TrainingDecision:
    """Decide about failed training tasks. `restart_evaluator` decides about the evaluator, unless a rule fails the
    job."""
    everyone = list(failed)
    failed = [failure for failure in everyone if failure.task.role is not Role.EVALUATOR]
    previous, now = situation.status.internal.incident, situation.now
    if not failed:
        needed = finished_without_the_chief(situation)
        return fail_job(situation, None, everyone) or (Renew(needed) if needed else None)
    first = first_cause(situation, _first(failed))
    tasks = replacement_group(situation, [*(failure.task for failure in failed), *silent_stragglers(situation, failed)])
    supervised = situation.group_job.spec.program is not None
    # The time is the node's; a clock that is ahead of ours must not hold the restart back.
    just_now = -SETTLE <= now - first.time < SETTLE
    if not supervised and len(tasks) > len(failed) and first.cause is Cause.ERROR and just_now:
        return Wait(first.time + SETTLE)
    if (end := fail_job(situation, first, everyone) or failed_for_good(situation, failed)) is not None:
        return end
    attempts = {view.task: view.attempt for view in situation.views}
    fresh = [one for one in failed if previous is None or not belongs(previous, one.task.id, attempts[one.task], now)]
    if previous is not None and not fresh:
        return _more_of(situation, previous, tasks, first)
    return _new_incident(situation, tasks, first_cause(situation, _first(fresh)))


def _more_of(situation: Situation, incident: Incident, tasks: tuple[Task, ...], first: Failure) -> Restart | GiveUp:
    """More has failed of the incident. A failure long after its beginning follows from it, and is not its cause."""
    first = ruled(situation, first)
    known = shows_its_cause(incident, situation.now)
    now_is = with_another_failure(incident, first) if known else incident
    if (end := over_budget(situation, now_is, first)) is not None:
        return replace(end, goes_on=True)
    return Restart(tasks, now_is, first, incident.cause)


def _new_incident(situation: Situation, tasks: tuple[Task, ...], first: Failure) -> Restart | GiveUp | Wait:
    """Begin an incident, or fail the job if the budget is used up. An incident that is not charged never uses up
    maxRestartsWithoutProgress."""
    first, backoff = ruled(situation, first), situation.group_job.spec.failure_policy.backoff
    incident = next_incident(situation.status, first, backoff, situation.now)
    if first.charged and not first.rule and (over := program_failed(situation, first)):
        return wait_for_late_reports(situation, first) or over
    if (over := over_budget(situation, incident, first)) is not None:
        return (wait_for_late_reports(situation, first) if first.charged else None) or over
    errors = repeated_errors(situation, incident, first) if first.charged else None
    return Restart(tasks, incident.but(errors=errors, mistake=mistake_of(situation, first)), first)


def over_budget(situation: Situation, incident: Incident, first: Failure) -> GiveUp | None:
    """The end of a job whose incident is charged, or counts as a disruption, and was not before: that uses up its
    budget. None if it has some left."""
    before, policy = situation.status.internal.incident, situation.group_job.spec.failure_policy
    counted, uncharged = (before.counted, before.uncharged) if before else (0, 0)
    step = situation.status.checkpoint_step
    if incident.uncharged > max(uncharged, policy.max_disruptions_without_progress):
        which = "a rule does not count" if first.rule else "were not the job's own doing"
        bound = f"{policy.max_disruptions_without_progress} restarts in a row that {which}"
        tried = f"{bound} (failurePolicy.maxDisruptionsWithoutProgress) were tried{_without_progress(step)}"
        return GiveUp(first, f"{first.with_rule()}; {tried}", "MaxDisruptionsExceeded")
    used_up = _used_up(policy, incident, step) if incident.counted > counted else None
    return GiveUp(first, f"{first.with_rule()}; {used_up}") if used_up else None


def end_over(situation: Situation, explained: Restart | None) -> GiveUp | None:
    """The end of a job over a cause of its latest incident that shows only now."""
    if explained is None:
        return None
    by_rule = explained.first.action is RuleAction.FAIL_JOB
    end = failed_by_rule(explained.first) if by_rule else over_budget(situation, explained.incident, explained.first)
    return replace(end, goes_on=True) if end is not None else None


def restart_evaluator(
    situation: Situation, failed: Iterable[Failure], training_replaced: Sequence[Task]
) -> EvaluatorDecision:
    """Replace an evaluator that has failed, or that must go where the chief goes. `training_replaced` are the training
    tasks that are replaced now. Nothing is charged, as training does not wait for the evaluator.

    The backoff grows with its attempts, and begins with the start of the failed attempt. Not every failure has a time
    (an eviction, a lost node). An attempt that ran longer than the backoff is replaced at once. A vanished pod has no
    start.
    """
    evaluator = situation.evaluator
    if evaluator is None:
        return None
    chief_moves = situation.chief.task in training_replaced and topology.evaluator_follows_chief(situation.group_job)
    # It holds the volume on the old chief's node until it has ended. One that is missing may be on its way there.
    gone = evaluator.state is PodState.MISSING
    if chief_moves and (gone or (evaluator.pod is not None and not facts_of(evaluator.pod).is_terminal)):
        return Renew((evaluator.task,), "The evaluator moves with the chief, whose volume it mounts")
    failure = next((failure for failure in failed if failure.task == evaluator.task), None)
    if failure is None:
        return None
    failure = ruled(situation, failure)
    in_vain = failure.end.permanent and not failure.rule
    if in_vain or failure.action is RuleAction.LEAVE_FAILED:
        why = "a restart does not help" if in_vain else "it is not replaced"
        return GiveUpEvaluation(f"{failure.with_rule()}: {why}, and nothing evaluates what is saved")
    if evaluator.pod is not None:
        wait = wait_before(evaluator.attempt + 1, situation.group_job.spec.failure_policy.backoff)
        if situation.now < created_at(evaluator.pod) + wait:
            return Wait(created_at(evaluator.pod) + wait)
    goes_on = "what was saved last is still to be evaluated" if situation.status.ended else "training goes on"
    return Renew((evaluator.task,), f"{failure.sentence()}; {goes_on}", failed=True)


def replacement_group(situation: Situation, failed: Sequence[Task]) -> tuple[Task, ...]:
    """The tasks that need a new pod when `failed` have failed.

    With our supervisor, the other tasks restart inside their containers. Without it, a MultiWorkerMirrored group cannot
    form again in the same process, and a ParameterServer chief does not survive the loss of a ps. A MultiWorkerMirrored
    task that has finished is needed again, because the collectives of the others wait for it.
    """
    spec = situation.group_job.spec
    supervised = spec.program is not None
    group = set(failed)
    if spec.strategy is Strategy.MULTI_WORKER_MIRRORED:
        finished_or_stuck = (view for view in situation.training if not supervised or view.state is PodState.SUCCEEDED)
        group.update(view.task for view in finished_or_stuck)
    if spec.strategy is Strategy.PARAMETER_SERVER and not supervised and any(task.role is Role.PS for task in failed):
        group.add(situation.chief.task)
    return tuple(view.task for view in situation.views if view.task in group)


def finished_without_the_chief(situation: Situation) -> tuple[Task, ...]:
    """Tasks that finished before the current training process of the chief began. It waits for them (see
    `replacement_group`).

    They ended just after the end of their chief was judged a failure. Or they finished and were evicted, and then the
    chief lost another peer and restarted in its container.
    """
    spec, chief = situation.group_job.spec, situation.chief
    if spec.strategy is not Strategy.MULTI_WORKER_MIRRORED or spec.program is None:
        return ()
    if chief.state is PodState.SUCCEEDED:
        return ()
    done = [view for view in situation.training if view.state is PodState.SUCCEEDED]
    report = situation.chief_report
    began = report.get("lastRestart", {}).get("time")
    waits = report.get("attempt") == chief.attempt and report.get("state") == "waiting"
    if waits and began:  # the chief's supervisor has restarted its process, which waits for its peers
        return tuple(view.task for view in done if _ended_before(view, times.parse(began), if_gone=True))
    if situation.status.internal.incident is None:  # nothing has failed, so this is the chief that they trained with
        return ()
    made = created_at(chief.pod) if chief.pod else None
    return tuple(view.task for view in done if made is None or _ended_before(view, made, if_gone=False))


def _ended_before(view: TaskView, moment: datetime, *, if_gone: bool) -> bool:
    """Whether the task ended before this moment. `if_gone` is the answer if its pod is gone, and with it the time."""
    ended = ended_at(view.pod) if view.pod else None
    return if_gone if ended is None else ended <= moment


def _first(failed: list[Failure]) -> Failure:
    """The first cause: by kind, then by time."""
    return min(failed, key=lambda failure: (failure.cause.precedence, failure.time))


def _used_up(policy: FailurePolicy, incident: Incident, checkpoint_step: int) -> str | None:
    """The limit of the failure policy that a charged incident exceeds, in words. None if it exceeds none."""
    in_a_row, in_all = policy.max_restarts_without_progress, policy.max_restarts
    if incident.charged > in_a_row:
        if in_a_row == 0:
            return "failurePolicy.maxRestartsWithoutProgress is 0, so training was not restarted"
        since = _without_progress(checkpoint_step)
        return f"failurePolicy.maxRestartsWithoutProgress ({in_a_row}) is used up{since}"
    if in_all is not None and incident.counted > in_all:
        if in_all == 0:
            return "failurePolicy.maxRestarts is 0, so training was not restarted"
        return f"failurePolicy.maxRestarts ({in_all}) is used up"
    return None


def _without_progress(checkpoint_step: int) -> str:
    return f", with no checkpoint newer than step {checkpoint_step}" if checkpoint_step >= 0 else ""


def fail_job(situation: Situation, first: Failure | None, failed: Sequence[Failure]) -> GiveUp | Wait | None:
    """The end of the job, if a rule fails it over `first` or another of the `failed`; else None. Failures that follow
    from others do not count. If nodes may still report what was done to the failed pod, the job waits for that."""
    if all(rule.action is not RuleAction.FAIL_JOB for rule in situation.group_job.spec.failure_policy.rules):
        return None
    waits = None
    for failure in _real(situation, first, failed):
        found = ruled(situation, failure)
        if found.action is not RuleAction.FAIL_JOB:
            continue
        wait = None if failure.task.role is Role.EVALUATOR else wait_for_late_reports(situation, failure)
        if wait is None:
            return failed_by_rule(found)
        waits = waits or replace(wait, then_fails=found)
    return waits


def failed_by_rule(failure: Failure) -> GiveUp:
    """The end of the job over a failure that a rule has matched."""
    return GiveUp(failure, f"{failure.sentence()}; {failure.rule}", BY_RULE)


def _real(situation: Situation, first: Failure | None, failed: Iterable[Failure]) -> Iterable[Failure]:
    """`first`, and the others that did not fail only because a task of these did."""
    if first is not None:
        yield first
    others = [one for one in failed if first is None or one.task != first.task]
    gone = {one.task for one in others if one.task.role is not Role.EVALUATOR}
    gone |= {first.task} if first is not None else set()
    for one in sorted(others, key=lambda one: (one.cause.precedence, one.time)):
        if one.task.role is Role.EVALUATOR or not may_follow_from(situation, one, gone):
            yield one
