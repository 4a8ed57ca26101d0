# SPDX-License-Identifier: Apache-2.0
"""Rules about `failurePolicy.rules`, as a Job's podFailurePolicy has them, about `elasticPolicy` and its bounds, and
about `scheduling`: gangs, and labels of nodes that bring pods near each other."""

from dtjob.api.label_forms import DOMAIN, NAME
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Reason, Rule, quoted

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

_POLICY = "self.elasticPolicy"
_WORKERS = "self.replicaSpecs.worker"


def _within(name: str, comparison: str, message: str) -> Rule:
    return Rule(
        "spec",
        f"!has(e.{name}) || !has({_WORKERS}) || {_WORKERS}.replicas {comparison} e.{name}",
        message,
        "replicaSpecs.worker.replicas",
        frame=f"!has({_POLICY}) || [{_POLICY}].all(e, {{}})",
    )


ELASTIC_RULES = (
    Rule(
        "spec",
        f"!has({_POLICY}) || has({_WORKERS})",
        "elasticPolicy changes the number of workers, and this job has none: add replicaSpecs.worker, or remove "
        "elasticPolicy",
        "elasticPolicy",
        Reason.FORBIDDEN,
    ),
    _within(
        "minReplicas",
        ">=",
        "replicas is below elasticPolicy.minReplicas: use more replicas, or a lower minReplicas",
    ),
    _within(
        "maxReplicas",
        "<=",
        "replicas is above elasticPolicy.maxReplicas: use fewer replicas, or a higher maxReplicas",
    ),
    Rule(
        "spec",
        f"!has({_POLICY}) || !has(self.program) || has(self.checkpoint)",
        "training continues at the last checkpoint when the number of workers changes: add checkpoint, or remove "
        "elasticPolicy",
        "checkpoint",
        Reason.REQUIRED,
    ),
)


def _in_form(at: str, field: str, form: str, message: str) -> Rule:
    return Rule(
        at,
        f"!has(self.{field}) || self.{field}.matches({quoted(f'^{form}$')})",
        message,
        field,
    )


_IS_NO_LABEL = "is not the key of a node label: write one, such as topology.kubernetes.io/zone"
GANG_RULES = (
    _in_form(
        "spec.scheduling.gang.volcano",
        "queue",
        DOMAIN,
        "is not the name of a Queue: use lower-case letters, digits, dashes and dots, such as team-a",
    ),
    Rule(
        "spec.scheduling.topology",
        "has(self.required) != has(self.preferred)",
        "set exactly one of required (pods wait for nodes near each other) and preferred (pods go elsewhere if there "
        "are none), such as {required: topology.kubernetes.io/zone}",
    ),
    _in_form("spec.scheduling.topology", "required", NAME, _IS_NO_LABEL),
    _in_form("spec.scheduling.topology", "preferred", NAME, _IS_NO_LABEL),
)
