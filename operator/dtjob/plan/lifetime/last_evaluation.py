# SPDX-License-Identifier: Apache-2.0
"""The last evaluation: after training has succeeded, the evaluator still evaluates the last checkpoint.

Only one with our supervisor, which ends when it has evaluated that; of another image's nobody knows whether it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dtjob.api.phase import Phase
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.objects import topology
from dtjob.plan.diagnosis.pending import waiting_reason
from dtjob.plan.failure.decisions import EvaluatorDecision, GiveUpEvaluation, Renew, Wait
from dtjob.plan.failure.restart import failure_at, restart_evaluator
from dtjob.plan.failure.rules import cannot_start, ruled
from dtjob.plan.record.conditions import EVALUATION_GIVEN_UP, holds
from dtjob.plan.record.failure import Failure
from dtjob.plan.seen.children import PodState, TaskView, created_at, node_of
from dtjob.plan.seen.situation import Situation

START_WITHIN = timedelta(hours=1)
"""For which an evaluator may come to work after training has succeeded: a node may have to be found for it, and its
image be pulled. One that is at work has all the time it needs."""


@dataclass(frozen=True)
class _Left:
    """An evaluator that has yet to do what is left to it."""

    view: TaskView
    ended_at: datetime
    """When training ended."""

    @property
    def deadline(self) -> datetime:
        return self.ended_at + START_WITHIN


def evaluator_left(situation: Situation) -> TaskView | None:
    """The evaluator of a job whose training has succeeded, while it has yet to finish; None once that was given up."""
    left = _left(situation)
    return left.view if left else None


def deadline(situation: Situation) -> datetime | None:
    """When an evaluator that is not at work is given up."""
    left = _left(situation)
    return left.deadline if left and left.view.state is not PodState.RUNNING else None


def leave_the_chief(situation: Situation) -> EvaluatorDecision:
    """Decide, at the moment of success, about an evaluator that waits for a place on the chief's node.

    The scheduler does not count pods that have ended, so the evaluator would wait for ever. It may run anywhere now,
    because the chief has released the volume. An evaluator that is about to be made may have been asked for with that
    condition already.
    """
    left = _left(situation)
    if left is None or not topology.evaluator_follows_chief(situation.group_job):
        return None
    if left.view.attempt != situation.written.internal.attempts.of(left.view.task.id):  # it is a new one just now
        return None
    pod = left.view.pod
    waits = left.view.state is PodState.PENDING and pod is not None and not node_of(pod)
    if not waits and left.view.state is not PodState.MISSING:
        return None
    return Renew((left.view.task,), "The evaluator need not wait for a place beside the chief")


def evaluate_last(situation: Situation) -> EvaluatorDecision:
    """Decide about the evaluator of a job whose training has succeeded: it is replaced as while training went on, but
    not after the deadline, and, unless a rule of failurePolicy.rules says so, not when it fails by itself on what will
    not change any more."""
    left = _left(situation)
    if left is None or left.view.state is PodState.RUNNING:
        return None
    failure = failure_at(situation, left.view) or next(cannot_start(situation, [left.view]), None)
    wanted = None
    if failure is not None:
        failure, verdict = ruled(situation, failure)
        wanted = verdict.of_a_rule
        if verdict.action in (RuleAction.LEAVE_FAILED, RuleAction.FAIL_JOB):
            return GiveUpEvaluation(f"{failure.with_rule()}; training has succeeded, and {_WITHOUT}")
    if failure is not None and wanted is None and failure.cause.charged and _was_made_after(left):
        return GiveUpEvaluation(f"{failure.sentence()} after training had ended; {_WITHOUT}")
    if situation.now >= left.deadline:
        minutes = START_WITHIN // timedelta(minutes=1)
        return GiveUpEvaluation(
            f"{left.view.task.id} was not at work {minutes} min after training had ended"
            f"{_why(situation, left.view, failure)};"
            f" {_WITHOUT}"
        )
    decision = restart_evaluator(situation, [failure] if failure else [], ())
    return Wait(min(decision.until, left.deadline)) if isinstance(decision, Wait) else decision


_WITHOUT = "what was saved last is not evaluated"


def evaluates_after_all(situation: Situation) -> bool:
    """Whether the evaluator is at work or has finished. It may be so after it was given up, until it is removed."""
    return any(view.evaluates and view.up for view in situation.views)


def keeps_account(situation: Situation) -> bool:
    """Whether the status says which tasks have finished. It does not if an ended job has lost its memory: nobody knows
    whether an evaluator without a pod had finished. An evaluator with a pod may end by itself."""
    return not situation.written.ended or bool(situation.written.internal.finished)


def _left(situation: Situation) -> _Left | None:
    status = situation.status
    if (
        status.phase is not Phase.SUCCEEDED
        or status.completion_time is None
        or situation.group_job.spec.program is None
    ):
        return None
    view = next((view for view in situation.views if view.evaluates), None)
    if view is None or view.state is PodState.SUCCEEDED:
        return None
    if view.state not in (PodState.RUNNING, PodState.PENDING) and not keeps_account(situation):
        return None
    if view.state is not PodState.RUNNING and holds(status.conditions, EVALUATION_GIVEN_UP):
        return None
    return _Left(view, status.completion_time)


def _was_made_after(left: _Left) -> bool:
    return left.view.pod is not None and created_at(left.view.pod) >= left.ended_at


def _why(situation: Situation, view: TaskView, failure: Failure | None) -> str:
    refused = situation.children.problems.get(
        f"Pod/{topology.pod_name(situation.group_job, view.task, view.attempt)}", ""
    )
    said = failure.sentence() if failure else refused or waiting_reason([view])
    return f" ({said})" if said else ""
