# SPDX-License-Identifier: Apache-2.0
"""Rules about `failurePolicy.rules`, as a Job's podFailurePolicy has them."""

from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Reason, Rule

_RULE = "spec.failurePolicy.rules[]"
_CRITERIA = ("onExitCodes", "onSignals", "onReasons", "onPodConditions")
_LISTED = f"[{', '.join(f'has(self.{one})' for one in _CRITERIA)}].filter(x, x).size()"

FAILURE_RULES = (
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
)
