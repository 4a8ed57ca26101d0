# SPDX-License-Identifier: Apache-2.0
"""FailJob: a rule of failurePolicy.rules ends the job at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.plan.failure.decisions import GiveUp, Wait
from dtjob.plan.failure.lost_peers import may_follow_from, wait_for_late_reports
from dtjob.plan.failure.rules import BY_RULE, ruled
from dtjob.plan.record.failure import Failure
from dtjob.plan.seen.situation import Situation


def fail_job(situation: Situation, first: Failure | None, failed: Sequence[Failure]) -> GiveUp | Wait | None:
    """The end of the job, if a rule wants that over `first` or over another of the `failed` that does not follow from
    one of them; else None. If nodes may still report what was done to the failed pod, the job waits for that."""
    if all(rule.action is not RuleAction.FAIL_JOB for rule in situation.group_job.spec.failure_policy.rules):
        return None
    waits = None
    for failure in _real(situation, first, failed):
        found, verdict = ruled(situation, failure)
        if verdict.action is not RuleAction.FAIL_JOB:
            continue
        wait = None if failure.task.role is Role.EVALUATOR else wait_for_late_reports(situation, failure)
        if wait is None:
            return failed_by_rule(found)
        waits = waits or replace(wait, over=found)
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
