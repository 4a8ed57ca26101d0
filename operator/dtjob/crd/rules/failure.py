# SPDX-License-Identifier: Apache-2.0
"""Rules about `failurePolicy`: its rules, as a Job's podFailurePolicy has them, and its stall timeout."""

from dtjob.api.spec.failure_rules import ConditionStatus, RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Reason, Rule

PEER_LOST = 75
"""With it a training process ends that has lost a peer: its supervisor starts it again in its container."""

_RULES = "spec.failurePolicy.rules"
_RULE = f"{_RULES}[]"
FRAME = "!has(self.failurePolicy.rules) || [self.failurePolicy.rules].all(rules, {})"
"""Leads to the list `rules` (see `Rule.frame`)."""
_CRITERIA = ("onExitCodes", "onSignals", "onReasons", "onPodConditions")
_LISTED = f"[{', '.join(f'has(self.{one})' for one in _CRITERIA)}].filter(x, x).size()"
_UNCOUNTED = RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS
_NO_FAILURE = ("ContainerCreating", "PodInitializing", "Completed")
"""Reasons through which every pod passes."""


def _has_role(role: Role) -> Rule:
    """No rule is about a role that the job does not have."""

    return Rule(
        "spec",
        f"has(self.replicaSpecs.{role}) || rules.all(r, !has(r.roles) || !('{role}' in r.roles))",
        f"a rule names the role {role}, which the job does not have: remove {role} from its roles",
        "failurePolicy.rules",
        frame=FRAME,
    )


FAILURE_RULES = (
    Rule(
        _RULES,
        "self.all(r, self.exists_one(o, o == r))",
        "a rule occurs twice, and the second one never matches: remove it",
    ),
    Rule(
        _RULE,
        f"{_LISTED} <= 1",
        f"a rule has only one of {', '.join(_CRITERIA)}: write a rule for each",
    ),
    Rule(
        _RULE,
        f"{_LISTED} > 0 || has(self.roles)",
        f"the rule matches nothing: add one of {', '.join(_CRITERIA)}; or roles, for all their failures",
        reason=Reason.REQUIRED,
    ),
    Rule(
        _RULE,
        f"self.action != '{RuleAction.LEAVE_FAILED}' || (has(self.roles) && self.roles == ['{Role.EVALUATOR}'])",
        "LeaveFailed is for the evaluator only, because training needs every other task: set roles to "
        "[evaluator], or another action",
        "action",
    ),
    Rule(
        _RULE,
        f"self.action != '{_UNCOUNTED}' || !has(self.roles) || !('{Role.EVALUATOR}' in self.roles)",
        "restarts of the evaluator never count: write Restart, or remove evaluator from roles",
        "action",
    ),
    Rule(
        f"{_RULE}.onExitCodes",
        "!(0 in self.values)",
        "exit code 0 is success and never matches: remove it (a rule with roles alone matches all their failures)",
        "values",
    ),
    Rule(
        f"{_RULE}.onReasons",
        "self.all(r, r.matches('^[A-Z][^ ]*$'))",
        "a reason is one word with a capital first letter, such as OOMKilled or ImagePullBackOff",
    ),
    Rule(
        f"{_RULE}.onReasons",
        f"!self.exists(r, r in [{', '.join(map(repr, _NO_FAILURE))}])",
        f"{', '.join(_NO_FAILURE[:-1])} and {_NO_FAILURE[-1]} are not reasons of failures: remove them",
    ),
    Rule(
        f"{_RULE}.onPodConditions",
        f"self.all(c, c.type != 'PodScheduled' || c.status != '{ConditionStatus.FALSE}')",
        "an unschedulable pod has not failed, so PodScheduled False never matches: remove it",
    ),
    *(_has_role(role) for role in Role),
    Rule(
        "spec",
        "!has(self.program) || rules.all(r, "
        f"!has(r.onExitCodes) || r.onExitCodes.operator != 'In' || !({PEER_LOST} in r.onExitCodes.values))",
        f"exit code {PEER_LOST} never matches: a program that ends with it has lost a peer and restarts in its "
        f"container, which ends with 76 if that does not help: write 76, or remove {PEER_LOST}",
        "failurePolicy.rules",
        frame=FRAME,
    ),
)


STALLED = "Stalled"
"""The reason of a container that ended over a stall."""

_FIELD = "failurePolicy.stallTimeoutSeconds"
_HAS = f"has(self.{_FIELD})"


STALL_RULES = (
    Rule(
        "spec",
        f"has(self.program) || !{_HAS}",
        "only dtjob's trainer reports steps, and it runs only if program is set: set program, or remove "
        "stallTimeoutSeconds",
        _FIELD,
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        f"!{_HAS} || !has(self.activeDeadlineSeconds) || self.{_FIELD} < self.activeDeadlineSeconds",
        "must be less than activeDeadlineSeconds, which fails the job first: reduce it, or remove it",
        _FIELD,
    ),
    Rule(
        "spec",
        f"{_HAS} || rules.all(r, !has(r.onReasons) || !('{STALLED}' in r.onReasons))",
        f"no task ends with reason {STALLED} if stallTimeoutSeconds is not set: set it, such as 600, or remove "
        f"{STALLED} from onReasons",
        "failurePolicy.rules",
        frame=FRAME,
    ),
)
