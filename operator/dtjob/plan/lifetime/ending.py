# SPDX-License-Identifier: Apache-2.0
"""The end of a job: how it fails for good, and what is left to do afterwards."""

from __future__ import annotations

from dtjob.api.phase import Phase
from dtjob.plan.diagnosis.reachability import nothing_to_reach
from dtjob.plan.draft import Draft
from dtjob.plan.failure.decisions import GiveUp
from dtjob.plan.failure.write_ahead import write_ahead
from dtjob.plan.lifetime.cleanup import deletion, pods_to_remove
from dtjob.plan.lifetime.deadlines import Overdue
from dtjob.plan.lifetime.last_evaluation import (
    evaluate_last,
    evaluates_after_all,
    evaluator_left,
    given_up_at,
    keeps_account,
)
from dtjob.plan.pods.convergence import converge_evaluator
from dtjob.plan.pods.gang import release_gang
from dtjob.plan.record.conditions import BLOCKED, EVALUATION_GIVEN_UP
from dtjob.plan.record.status import confirm_phase, set_condition, set_phase
from dtjob.plan.seen.children import count_tasks, lost_at
from dtjob.plan.seen.situation import Situation


def end_by_failure(draft: Draft, decision: GiveUp) -> None:
    """The job fails over a failure."""
    status = draft.status.but(first_failure=decision.first.in_status())
    draft.status = set_phase(status, Phase.FAILED, decision.reason, decision.why, draft.now)
    draft.add_event("Warning", Phase.FAILED.value, decision.why)


def end_by_deadline(draft: Draft, late: Overdue) -> None:
    """The job fails over a deadline."""
    draft.status = set_phase(draft.status, Phase.FAILED, late.reason, late.message, draft.now)
    draft.add_event("Warning", late.reason, late.message)


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
    draft.look_again(*(lost_at(pod) for view in situation.views for pod in view.pods))
    _describe(draft, situation)


def _describe(draft: Draft, situation: Situation) -> None:
    """Set conditions and counts. The phase stays as it is."""
    status, now = situation.status, draft.now
    if evaluates_after_all(situation):
        status = set_condition(status, EVALUATION_GIVEN_UP, False, "EvaluatorAtWork", "", now)
    counted = count_tasks(status, situation.views)
    status = counted if keeps_account(situation) else counted.remembering(finished=status.internal.finished)
    if status.phase is Phase.SUCCEEDED and situation.written.ended:  # its pods may have been removed since
        status = status.but(ready=situation.status.ready)
    status = set_condition(status, BLOCKED, False, "JobEnded", "", now)
    status = nothing_to_reach(status, "JobEnded", now)
    if status.observed_generation != situation.written.observed_generation:
        status = confirm_phase(status)
    draft.status = status
