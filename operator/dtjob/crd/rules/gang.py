# SPDX-License-Identifier: Apache-2.0
"""Rules about gangs, and about labels of nodes that bring pods near each other."""

from dtjob.api.label_forms import DOMAIN, NAME
from dtjob.api.spec.replica_specs import MAX_REPLICAS, Role
from dtjob.api.spec.scheduling import GangProvider
from dtjob.crd.rule import Reason, Rule, quoted

_TRAINING = tuple(role.value for role in Role if role is not Role.EVALUATOR)


def _tasks_of(role: str) -> str:
    block, policy = f"self.replicaSpecs.{role}", "self.elasticPolicy"
    number = "1" if role == Role.CHIEF else f"{block}.replicas"
    if role == Role.WORKER:
        number = f"(has({policy}) ? (has({policy}.maxReplicas) ? {policy}.maxReplicas : {MAX_REPLICAS}) : {number})"
    return f"(has({block}) ? {number} : 0)"


_TASKS = " + ".join(map(_tasks_of, _TRAINING))


def _not_for_one_pod(name: str) -> Rule:
    return Rule(
        "spec",
        f"!has(self.scheduling.{name}) || {_TASKS} > 1",
        f"only one pod of this job trains: remove {name}",
        f"scheduling.{name}",
        Reason.FORBIDDEN,
    )


def _only_of(block: str, provider: GangProvider) -> Rule:
    """The options of one provider. If the operator's default decides, nobody knows whether they would be used."""
    return Rule(
        "spec.scheduling.gang",
        f"!has(self.{block}) || (has(self.provider) && self.provider == '{provider.value}')",
        f"these are options of provider {provider.value}: set provider to {provider.value}, or remove {block}",
        block,
        Reason.FORBIDDEN,
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
    _not_for_one_pod("gang"),
    _only_of("volcano", GangProvider.VOLCANO),
    _only_of("coscheduling", GangProvider.COSCHEDULING),
    _in_form(
        "spec.scheduling.gang.volcano",
        "queue",
        DOMAIN,
        "is not the name of a Queue: use lower-case letters, digits, dashes and dots, such as team-a",
    ),
    _not_for_one_pod("topology"),
    Rule(
        "spec.scheduling.topology",
        "has(self.required) != has(self.preferred)",
        "set exactly one of required (pods wait for nodes near each other) and preferred (pods go elsewhere if there "
        "are none), such as {required: topology.kubernetes.io/zone}",
    ),
    _in_form("spec.scheduling.topology", "required", NAME, _IS_NO_LABEL),
    _in_form("spec.scheduling.topology", "preferred", NAME, _IS_NO_LABEL),
)
