# SPDX-License-Identifier: Apache-2.0
"""The last evaluation: after training has succeeded, the evaluator still evaluates the last checkpoint.

Only an evaluator with our supervisor does so: it ends after that. Nobody knows whether one of another image ends.
"""

from datetime import datetime, timedelta

from dtjob.api.phase import Phase
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.objects import topology
from dtjob.plan.diagnosis.pending import waiting_reason
from dtjob.plan.failure.decisions import EvaluatorDecision, GiveUpEvaluation, Renew, Wait
from dtjob.plan.failure.restart import failure_at, restart_evaluator
from dtjob.plan.failure.rules import cannot_start, ruled
from dtjob.plan.record.failure import Failure
from dtjob.plan.record.status import EVALUATION_GIVEN_UP, holds
from dtjob.plan.seen.children import PodState, TaskView, created_at, node_of
from dtjob.plan.seen.situation import Situation

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
    if view.attempt != situation.written.internal.attempts.of(view.task.id):  # it is a new one just now
        return None
    waits = view.state is PodState.PENDING and view.pod is not None and not node_of(view.pod)
    if not waits and view.state is not PodState.MISSING:
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
