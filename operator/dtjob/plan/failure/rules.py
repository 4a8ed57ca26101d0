# SPDX-License-Identifier: Apache-2.0
"""Failure rules: what is done about a failure. The first of failurePolicy.rules that matches decides. If none matches,
the built-in rules decide."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dtjob.api.spec.failure_rules import ExitCodeOperator, FailureRule, OnPodCondition, RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.plan.failure.built_in import BUILT_IN
from dtjob.plan.failure.cause import Evidence, evidence_of, of_pod, waiting
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import PodState, TaskView, facts_of
from dtjob.plan.seen.situation import Situation

BY_RULE = "PodFailurePolicy"
"""The reason of a job that a FailJob rule has ended; batch/v1 Job's word for it."""


def ruled(situation: Situation, failure: Failure) -> Failure:
    """The failure of one of the job's pods, with what is to be done about it and the rule that says so."""
    view = situation.by_task.get(failure.task) if situation.group_job.spec.failure_policy.rules else None
    pod = next((pod for pod in (view.pods if view else ()) if pod["metadata"]["name"] == failure.pod), None)
    if pod is None:  # it is gone, or nobody asks for it
        return _ruled(situation, failure, Evidence(), waits=False)
    facts = facts_of(pod)
    waits = failure.cause is Cause.NOT_STARTED and not facts.is_terminal and facts.waits
    return _ruled(situation, failure, evidence_of(pod), waits=waits)


def _ruled(situation: Situation, failure: Failure, evidence: Evidence, *, waits: bool) -> Failure:
    """The failure, with the action and the words of the first rule that matches `evidence`. A pod that `waits` has not
    failed by itself: only rules on reasons decide about it."""
    role = failure.task.role
    for index, rule in enumerate(situation.group_job.spec.failure_policy.rules):
        if waits and rule.on_reasons is None:
            continue
        if rule.is_about(role) and (matched := match(rule, evidence, role)):
            words = f"failurePolicy.rules[{index}] ({rule.action}) matches {matched}"
            return replace(failure, rule=words, action=rule.action)
    action = RuleAction.RESTART
    if role is not Role.EVALUATOR:
        action = next(one.action for one in BUILT_IN if one.charged is failure.cause.charged)
    return replace(failure, rule="", action=action)


def match(rule: FailureRule, evidence: Evidence, role: Role) -> str:
    """What the criterion of the rule matches in the evidence, in words; empty if it does not match. A rule without one
    matches the role."""
    if rule.on_exit_codes is not None:
        wanted, code = rule.on_exit_codes, evidence.exit_code
        matches = code is not None and (code in wanted.values) == (wanted.operator is ExitCodeOperator.IN)
        return f"exit code {code}" if matches else ""
    if rule.on_signals is not None:
        return f"signal {evidence.signal}" if evidence.signal in rule.on_signals else ""
    if rule.on_reasons is not None:
        found = next((reason for reason in evidence.reasons if reason in rule.on_reasons), "")
        return found and f"reason {found}"
    if rule.on_pod_conditions is not None:
        return next(filter(None, (_condition(one, evidence) for one in rule.on_pod_conditions)), "")
    return f"any failure of role {role}"


def cannot_start(situation: Situation, views: Iterable[TaskView]) -> Iterator[Failure]:
    """Failures of tasks whose containers wait for something that a rule matches. An evaluator that the rule ignores
    continues to wait."""
    if all(rule.on_reasons is None for rule in situation.group_job.spec.failure_policy.rules):
        return
    for view in views:
        if (failure := _cannot_start(situation, view)) is not None:
            yield failure


def _cannot_start(situation: Situation, view: TaskView) -> Failure | None:
    pod = view.pod
    if view.state is not PodState.PENDING or pod is None or not facts_of(pod).waits:
        return None
    for reason, message in waiting(pod):
        failure = of_pod(view.task, pod, Cause.NOT_STARTED, situation.now, f"cannot start ({reason})", message)
        found = _ruled(situation, failure, Evidence(reasons=(reason,)), waits=True)
        if found.of_a_rule not in (None, RuleAction.LEAVE_FAILED):
            return failure
    return None


def _condition(wanted: OnPodCondition, evidence: Evidence) -> str:
    for one in evidence.conditions:
        reason = one.get("reason") or ""
        if (one["type"], one["status"]) == (wanted.type, wanted.status.value) and wanted.reason in (None, reason):
            return f"pod condition {one['type']}={one['status']}" + (f" ({reason})" if reason else "")
    return ""
