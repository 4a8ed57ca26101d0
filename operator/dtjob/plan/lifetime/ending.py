# SPDX-License-Identifier: Apache-2.0
"""The end of a job: success, deadlines, failure for good, the last evaluation, and what is deleted afterwards.

After training has succeeded, the evaluator still evaluates the last checkpoint, and ends. Only an evaluator with our
supervisor does so: nobody knows whether one of another image ends.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob.api.job import KIND, CleanPodPolicy, Job, SuccessPolicy
from dtjob.api.phase import Phase
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.api.status.internal import ProcessStart
from dtjob.api.words import counted
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan import data_workers
from dtjob.plan.actions import Delete
from dtjob.plan.diagnosis.checkpoints import start_of
from dtjob.plan.diagnosis.pending import waiting_reason
from dtjob.plan.diagnosis.reachability import nothing_to_reach
from dtjob.plan.elastic import strays
from dtjob.plan.failure.decisions import EvaluatorDecision, GiveUp, GiveUpEvaluation, Renew, Wait, write_ahead
from dtjob.plan.failure.restart import failure_at, restart_evaluator
from dtjob.plan.failure.rules import cannot_start, ruled
from dtjob.plan.pods import converge_evaluator, release_gang
from dtjob.plan.record.failure import Failure
from dtjob.plan.record.incidents import add_incident, begun_by, close_incident, correct_incident
from dtjob.plan.record.status import BLOCKED, EVALUATION_GIVEN_UP, confirm_phase, holds, set_condition, set_phase
from dtjob.plan.seen.children import (
    PodState,
    TaskView,
    count_tasks,
    created_at,
    deleting,
    ended,
    facts_of,
    kept_by_sidecar,
    node_of,
)
from dtjob.plan.seen.progress import failed_at
from dtjob.plan.seen.situation import Draft, Situation


def fail(draft: Draft, end: GiveUp) -> None:
    """The job fails, over a failure or a deadline."""
    draft.status = close_incident(draft.status, draft.now)
    before = draft.status
    draft.status = set_phase(before, Phase.FAILED, end.reason, end.why, draft.now)
    if end.first is None:
        draft.add_event("Warning", end.reason, end.why)
        return
    known = before.internal.incident if end.goes_on else None
    what = begun_by(end.first, before, known.number if known else before.restarts.total + 1, draft.now)
    status = correct_incident(draft.status, what) if known else add_incident(draft.status, what, draft.now)
    status = failed_at(status, end.first.end.step, draft.now)
    draft.status = status.but(last_failure=end.first.in_status())
    draft.add_event("Warning", Phase.FAILED.value, end.why)


def after_the_end(draft: Draft, *, has_quota: bool) -> None:
    """Delete the pods of a job that has ended, and the job itself when its time has come.

    If training has succeeded, the evaluator first evaluates what was saved last. It needs the quota of its queue.
    """
    write_ahead(draft, evaluate_last(draft.situation))
    situation = draft.situation
    evaluator = evaluator_left(situation)
    if evaluator and has_quota and not situation.group_job.spec.suspend:
        draft.do(converge_evaluator(situation, evaluator))
    removed, lingers_until = pods_to_remove(situation)
    deleted, due = deletion(situation, lingers=lingers_until is not None)
    draft.do((*removed, *release_gang(situation), *deleted))
    draft.look_again(lingers_until, given_up_at(situation), due)
    draft.look_again(*(facts_of(pod).lost_at for view in situation.views for pod in view.pods))
    _describe(draft, situation)


def _describe(draft: Draft, situation: Situation) -> None:
    """Set conditions and counts. The phase stays as it is."""
    status, now = situation.status, draft.now
    if situation.evaluator and situation.evaluator.up:  # after it was given up, until it is removed
        status = set_condition(status, EVALUATION_GIVEN_UP, False, "EvaluatorAtWork", "", now)
    finished, status = status.internal.finished, count_tasks(status, situation.views)
    if not keeps_account(situation):
        status = status.remembering(finished=finished)
    elif situation.written.ended:  # a list from before the end shows them at work
        still = {view.task.id: view.attempt for view in situation.views if finished.get(view.task.id) == view.attempt}
        status = status.remembering(finished={**still, **status.internal.finished})
    if status.phase is Phase.SUCCEEDED and situation.written.ended:  # its pods may have been removed since
        status = status.but(ready=situation.status.ready)
    status = set_condition(status, BLOCKED, False, "JobEnded", "", now)
    status = nothing_to_reach(status, "JobEnded", now)
    if status.observed_generation != situation.written.observed_generation:
        status = confirm_phase(status)
    draft.status = status


LINGER = timedelta(seconds=60)
"""Time to end by themselves: MultiWorkerMirrored tasks finish up to 25 s apart."""


def pods_to_remove(situation: Situation) -> tuple[list[Delete], datetime | None]:
    """The pods that an ended job gives up now, and when to look again for those that may still end by themselves."""
    gone = strays(situation)
    policy, ended_at = situation.group_job.spec.clean_pod_policy, situation.status.completion_time
    # If a deadline ended the job, nothing may run on. Then cleanPodPolicy None keeps only pods that have ended.
    over_deadline = situation.status.reason in (DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED)
    if ended_at is None or (policy is CleanPodPolicy.NONE and not over_deadline):
        return gone, None
    linger_until = ended_at + LINGER
    removed, waits = gone, False
    evaluator, why = evaluator_left(situation), f"the job has ended (cleanPodPolicy: {policy.value})"
    for view in situation.views:
        if view is evaluator:
            continue
        for pod in view.pods:
            if not _is_cleaned(pod, policy):
                continue
            lingers = situation.status.phase is Phase.SUCCEEDED and not ended(pod) and situation.now < linger_until
            if lingers and _ends_by_itself(situation.group_job, view):
                waits = True
                continue
            removed.append(Delete.of(pod, why))
    removed += [Delete.of(pod, why) for pod in data_workers.pods_of(situation) if _is_cleaned(pod, policy)]
    return removed, linger_until if waits else None


def _is_cleaned(pod: Manifest, policy: CleanPodPolicy) -> bool:
    """Whether the policy has a pod of an ended job deleted. A sidecar would keep a pod running for ever after its
    training has ended."""
    return not deleting(pod) and (policy is CleanPodPolicy.ALL or not ended(pod) or kept_by_sidecar(pod))


def _ends_by_itself(job: Job, view: TaskView) -> bool:
    if view.evaluates or job.spec.strategy is not Strategy.PARAMETER_SERVER:
        return True
    # Workers that no chief hands its steps to train by themselves, each to its own end.
    return view.task.role is Role.WORKER and job.spec.replica_specs.chief is None


def deletion(situation: Situation, lingers: bool) -> tuple[list[Delete], datetime | None]:
    """The deletion of the job if its time has come, and else when to look again.

    `lingers`: some of its pods may still end by themselves, and are waited for. An evaluator that has the last
    checkpoint to evaluate is waited for, too.
    """
    status, metadata = situation.status, situation.group_job.metadata
    seconds, ended_at = situation.group_job.spec.ttl_seconds_after_finished, status.completion_time
    if seconds is None or ended_at is None or lingers or evaluator_left(situation) is not None:
        return [], None
    due = ended_at + timedelta(seconds=seconds)
    if situation.now < due:
        return [], due
    outcome = "failed" if status.phase is Phase.FAILED else "succeeded"
    why = f"it {outcome} {seconds} s ago (ttlSecondsAfterFinished)"
    # The field may have been raised, or the job unsuspended, a moment ago: then it is planned for anew.
    return [Delete(KIND, metadata.name, metadata.uid, why, metadata.resource_version)], None


NOT_FINITE = "WeightsNotFinite"
"""The reason of the event about a model that nobody can use."""
NOTHING_TO_TRAIN = "NothingToTrain"
"""The reason of the event about a job that found a run that had ended."""
NOTHING_TRAINED = "NothingTrained"
"""The reason of the event about a job whose program ended with 0 before its first step."""


def succeeded(situation: Situation) -> bool:
    """Whether training has succeeded: the chief task exited with 0. That is worker 0 if there is no chief, as in TFJob.
    Under AllWorkers, every worker did, and the chief if there is one."""
    needed = [situation.chief]
    if situation.group_job.spec.success_policy is SuccessPolicy.ALL_WORKERS:
        needed += [view for view in situation.training if view.task.role is Role.WORKER]
    return all(view.state is PodState.SUCCEEDED for view in needed)


def succeed(draft: Draft) -> None:
    """End the job well. Users are told, too, if it has trained nothing or if its weights are no numbers."""
    report, message = draft.situation.chief_report, "training has ended"
    draft.add_event("Normal", Phase.SUCCEEDED.value, "Training has ended")
    if (step := _trained_before(report)) is not None:
        checkpoint, defaults = draft.situation.group_job.spec.checkpoint, draft.situation.defaults
        storage = checkpoint.storage if checkpoint else None
        where = (storage and storage.uri) or defaults.checkpoints or (storage.mount_path if storage else "its storage")
        words = (
            f"nothing was left to train: the job found a checkpoint of step {step} in {where}, of a run that has "
            f"ended; raise the number of epochs or steps to train on, or {defaults.anew} to train again"
        )
        message = f"training has ended: {words}"
        draft.add_event("Warning", NOTHING_TO_TRAIN, f"{words[0].upper()}{words[1:]}")
    elif report.get("stepped") is False and not draft.status.first_step_time and not report.get("restoredStep"):
        words = (
            "the program ended with exit code 0 and trained no step; look in its log for why it calls neither fit nor "
            "train"
        )
        message = f"training has ended: {words}"
        draft.add_event("Warning", NOTHING_TRAINED, f"{words[0].upper()}{words[1:]}")
    elif (found := report.get("weights")) is not None:
        message = f"training has ended, but the weights of the model hold {found}"
        advice = "look for a loss that is no number, lower the learning rate, or clip gradients"
        draft.add_event("Warning", NOT_FINITE, f"The weights of the model hold {found}: {advice}")
    closed = close_incident(draft.status, draft.now)
    draft.status = set_phase(closed, Phase.SUCCEEDED, "Completed", message, draft.now)


def _trained_before(report: Mapping[str, Any]) -> int | None:
    """The step of another run's checkpoint, if the first process of this job found nothing left to train. A later one
    may have found what an earlier one of this job has trained."""
    step = report.get("restoredStep")
    first = start_of(report) == ProcessStart() and report.get("stepped") is False
    return step if first and step and report.get("step") == step else None


DEADLINE_EXCEEDED = "DeadlineExceeded"
"""A Job's reason."""
START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"


def overdue(situation: Situation) -> GiveUp | None:
    """The end of the job over one of its deadlines; None if neither is over."""
    spec, now = situation.group_job.spec, situation.now
    active_until, start_until = deadlines(situation)
    if active_until is not None and now >= active_until:
        absent = _absent(situation)
        more = f"; at the end {absent}" if absent else ""
        field = f"activeDeadlineSeconds ({spec.active_deadline_seconds})"
        return GiveUp(None, f"the job was active for longer than {field}{more}", DEADLINE_EXCEEDED)
    if start_until is not None and now >= start_until and (absent := _absent(situation)):
        field = f"startDeadlineSeconds ({spec.start_deadline_seconds})"
        return GiveUp(None, f"not all tasks ran within {field}: {absent}", START_DEADLINE_EXCEEDED)
    return None


def deadlines(situation: Situation) -> tuple[datetime | None, datetime | None]:
    """When the job may be active no longer, and when its tasks are to run at the latest. None: no deadline."""
    spec, active = situation.group_job.spec, situation.status.active
    active_until = start_until = None
    if active is None or active.since is None:
        return None, None
    if spec.active_deadline_seconds is not None:
        left = timedelta(seconds=spec.active_deadline_seconds - active.seconds)
        active_until = active.since + max(left, timedelta(0))
    if spec.start_deadline_seconds is not None and active.all_ran_time is None:
        start_until = active.since + timedelta(seconds=spec.start_deadline_seconds)
    return active_until, start_until


def _absent(situation: Situation) -> str:
    """How many of the tasks that train do not run, and the message of the phase, which says why. Empty if all are
    up."""
    absent, written = sum(not view.up for view in situation.training), situation.written
    if not absent:
        return ""
    why = f": {written.message}" if written.message and written.phase in (Phase.PENDING, Phase.RESTARTING) else ""
    return f"{absent} of {counted(len(situation.training), 'task')} did not run{why}"


START_WITHIN = timedelta(hours=1)
"""How long an evaluator may take to start after training has succeeded. A node may have to be found for it, and its
image be pulled. One that is at work has all the time it needs."""


def evaluator_left(situation: Situation) -> TaskView | None:
    """The evaluator of a job whose training has succeeded, while it has yet to finish; None once that was given up."""
    status, view = situation.status, situation.evaluator
    if status.phase is not Phase.SUCCEEDED or status.completion_time is None or view is None:
        return None
    if situation.group_job.spec.program is None or view.state is PodState.SUCCEEDED:
        return None
    if view.state is PodState.RUNNING:
        return view
    forgotten = view.state is not PodState.PENDING and not keeps_account(situation)
    return None if forgotten or holds(status.conditions, EVALUATION_GIVEN_UP) else view


def given_up_at(situation: Situation) -> datetime | None:
    """When an evaluator that is not at work is given up."""
    view, ended_at = evaluator_left(situation), situation.status.completion_time
    waits = view is not None and view.state is not PodState.RUNNING
    return ended_at + START_WITHIN if waits and ended_at is not None else None


def leave_the_chief(situation: Situation) -> EvaluatorDecision:
    """Decide, at the moment of success, about an evaluator that waits for a place on the chief's node.

    The scheduler does not count pods that have ended, so the evaluator would wait for ever. It may run anywhere now,
    because the chief has released the volume. An evaluator that is about to be made may have been asked for with that
    condition already.
    """
    view = evaluator_left(situation)
    if view is None or not topology.evaluator_follows_chief(situation.group_job):
        return None
    waits = view.state is PodState.PENDING and view.pod is not None and not node_of(view.pod)
    is_new = view.attempt != situation.written.internal.attempts.of(view.task.id)
    if not waits and (is_new or view.state is not PodState.MISSING):
        return None
    return Renew((view.task,), "The evaluator need not wait for a place beside the chief")


def evaluate_last(situation: Situation) -> EvaluatorDecision:
    """Decide about the evaluator of a job whose training has succeeded. It is replaced as during training, but not
    after the deadline. If it was made after the end and fails by itself, it is given up, because nothing changes any
    more. A rule of failurePolicy.rules comes first."""
    view, gives_up_at, ended_at = evaluator_left(situation), given_up_at(situation), situation.status.completion_time
    if view is None or gives_up_at is None or ended_at is None:
        return None
    failure = failure_at(situation, view) or next(cannot_start(situation, [view]), None)
    if failure is not None:
        failure = ruled(situation, failure)
        if failure.action in (RuleAction.LEAVE_FAILED, RuleAction.FAIL_JOB):
            return GiveUpEvaluation(f"{failure.with_rule()}; training has succeeded, and {_WITHOUT}")
        made_after = view.pod is not None and created_at(view.pod) >= ended_at
        if failure.of_a_rule is None and failure.cause.charged and made_after:
            return GiveUpEvaluation(f"{failure.sentence()} after training had ended; {_WITHOUT}")
    if situation.now >= gives_up_at:
        minutes = START_WITHIN // timedelta(minutes=1)
        return GiveUpEvaluation(
            f"{view.task.id} was not at work {minutes} min after training had ended{_why(situation, view, failure)};"
            f" {_WITHOUT}"
        )
    decision = restart_evaluator(situation, [failure] if failure else [], ())
    return Wait(min(decision.until, gives_up_at)) if isinstance(decision, Wait) else decision


def without_quota(situation: Situation) -> GiveUpEvaluation | None:
    """Decide about the evaluator of a job whose place in its queue is over: one that is not at work gets no pod."""
    view = evaluator_left(situation)
    if view is None or view.state is PodState.RUNNING:
        return None
    return GiveUpEvaluation(f"{view.task.id} was not done when the job lost its place in its queue; {_WITHOUT}")


_WITHOUT = "what was saved last is not evaluated"


def keeps_account(situation: Situation) -> bool:
    """Whether the status says which tasks have finished. It does not if an ended job has lost its memory: nobody knows
    whether an evaluator without a pod had finished. An evaluator with a pod may end by itself."""
    return not situation.written.ended or bool(situation.written.internal.finished)


def _why(situation: Situation, view: TaskView, failure: Failure | None) -> str:
    refused = situation.children.problems.get(
        f"Pod/{topology.pod_name(situation.group_job, view.task, view.attempt)}", ""
    )
    said = failure.sentence() if failure else refused or waiting_reason([view])
    return f" ({said})" if said else ""
