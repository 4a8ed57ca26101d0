# SPDX-License-Identifier: Apache-2.0
"""What `dtjob explain` says of failures: the rules that hold, in their order, the built-in ones last."""

from collections.abc import Iterator
from typing import NamedTuple

from dtjob.api.job import Job
from dtjob.api.spec.failure_rules import ExitCodeOperator, FailureRule, OnPodCondition, RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.objects import topology
from dtjob.objects.exit_codes import RESTARTED_IN_VAIN
from dtjob.objects.pod.environment import restart_signals
from dtjob.plan.failure.built_in import BUILT_IN

BUILT_IN_NAME = "built-in"


class RuleThatHolds(NamedTuple):
    """One rule in words. `rule`: its place in the manifest, or that it is built in. `roles`: those of the job that it
    is about."""

    rule: str
    action: str
    roles: list[str]
    matches: str
    does: str


def rules_that_hold(job: Job) -> list[RuleThatHolds]:
    """The rules in the order in which they are asked."""
    there = tuple(dict.fromkeys(task.role for task in topology.tasks(job)))
    training = tuple(role for role in there if role.trains)
    found = [
        (f"failurePolicy.rules[{index}]", rule.action, tuple(filter(rule.is_about, there)), criterion(rule))
        for index, rule in enumerate(job.spec.failure_policy.rules)
    ]
    found += [(BUILT_IN_NAME, one.action, training, one.what) for one in BUILT_IN]
    everyone = dict.fromkeys(task.role for task in topology.all_tasks(job))
    found += [(BUILT_IN_NAME, RuleAction.RESTART, (role,), "any failure") for role in everyone if not role.trains]
    return [
        RuleThatHolds(name, action.value, [role.value for role in roles], matches, _does(job, action, roles))
        for name, action, roles, matches in found
    ]


def as_lines(job: Job) -> Iterator[str]:
    """The rules for people."""
    for number, rule in enumerate(rules_that_hold(job), start=1):
        yield f"  {number:<2} {rule.rule:<22} {rule.action:<16} {', '.join(rule.roles)}: {rule.matches}"
        yield f"{'':>28}{rule.does}"
    yield "  A pod that waits for a node or its image counts as failed only if a rule's onReasons says so."
    if job.spec.program is not None:
        yield from _restarted_in_place(job)
        yield "  If a program has lost its peers, it starts again in its container. If that does not help,"
        yield f"  the container ends with {RESTARTED_IN_VAIN}. Else it ends with the program's exit code."
        yield "  A program that fails twice in the same way, or after all its training, ends the job (ProgramFailed),"
        yield "  unless a rule of failurePolicy.rules matches."


def _restarted_in_place(job: Job) -> Iterator[str]:
    """Over which signals a program starts again in its container, where it does so in any task."""
    by_task = {task: restart_signals(job, task) for task in topology.tasks(job)}
    for signals in dict.fromkeys(filter(None, by_task.values())):
        roles = dict.fromkeys(task.role.value for task, found in by_task.items() if found == signals)
        yield f"  {', '.join(roles)}: a program that {', '.join(signals)} ends after new steps starts again"
        yield "  in its container. maxRestartsWithoutProgress does not count that. If a rule is about the signal,"
        yield "  the pod ends."


def criterion(rule: FailureRule) -> str:
    """What the rule matches, in words."""
    if rule.on_exit_codes is not None:
        codes = ", ".join(map(str, rule.on_exit_codes.values))
        return f"exit code {codes}" if rule.on_exit_codes.operator is ExitCodeOperator.IN else f"exit code not {codes}"
    if rule.on_signals is not None:
        return f"signal {', '.join(rule.on_signals)}"
    if rule.on_reasons is not None:
        return f"reason {', '.join(rule.on_reasons)}"
    if rule.on_pod_conditions is not None:
        return f"pod condition {', '.join(_condition(one) for one in rule.on_pod_conditions)}"
    return "any failure"


def _condition(wanted: OnPodCondition) -> str:
    return f"{wanted.type}={wanted.status.value}" + (f" ({wanted.reason})" if wanted.reason else "")


def _does(job: Job, action: RuleAction, roles: tuple[Role, ...]) -> str:
    """What the action comes to."""
    policy = job.spec.failure_policy
    match action:
        case RuleAction.FAIL_JOB:
            return "the job fails at once"
        case RuleAction.LEAVE_FAILED:
            return "it is not replaced; training goes on"
        case RuleAction.RESTART if roles and not any(role.trains for role in roles):
            return "replaced alone, and never counted; training goes on"
        case RuleAction.RESTART:
            most = f"at most {policy.max_restarts_without_progress} in a row without a newer checkpoint"
            in_all = f", and {policy.max_restarts} in all (maxRestarts)" if policy.max_restarts is not None else ""
            return f"restart; {most} (maxRestartsWithoutProgress){in_all}"
        case RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS:
            bound = (
                f"at most {policy.max_disruptions_without_progress} in a row without a newer checkpoint or a long run"
            )
            return f"restart, not counted by maxRestartsWithoutProgress; {bound} (maxDisruptionsWithoutProgress)"
