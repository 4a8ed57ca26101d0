"""Rules about gangs, and about labels of nodes that bring pods near each other."""

from __future__ import annotations

import re

from dtjob.api.replicas import MAX_REPLICAS, Replica, Role
from dtjob.api.scheduling import GangProvider
from dtjob.crd.rule import Reason, Rule, Value

_TRAINING = tuple(role.value for role in Role if role is not Role.EVALUATOR)
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = rf"({_SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?"
"""A label's key (apimachinery's IsQualifiedName)."""


def _tasks(spec: Value) -> int:
    """How many tasks train, at most: an elastic job is scaled within its bounds whatever its gang asks for."""
    replicas = spec["replicas"]
    return sum(_most(replicas[role]) for role in _TRAINING if replicas.get(role) is not None)


def _most(block: Value) -> int:
    if block.get("max") is not None:
        return int(block["max"])
    return MAX_REPLICAS if block.get("min") is not None else int(block.get("count", Replica().count))


def _tasks_of(role: str) -> str:
    block = f"self.replicas.{role}"
    count = f"{block}.count"
    if role == Role.WORKER:
        count = f"(has({block}.max) ? {block}.max : has({block}.min) ? {MAX_REPLICAS} : {count})"
    return f"(has({block}) ? {count} : 0)"


_TASKS = " + ".join(map(_tasks_of, _TRAINING))
_ONE_POD = "only one pod of this job trains, which is near and together with itself: remove {}"


def _scheduling(spec: Value) -> Value:
    return spec.get("scheduling") or {}


def _not_for_one_pod(name: str) -> Rule:
    return Rule(
        "spec",
        f"!has(self.scheduling.{name}) || {_TASKS} > 1",
        lambda spec: _scheduling(spec).get(name) is None or _tasks(spec) > 1,
        _ONE_POD.format(name),
        f"scheduling.{name}",
        Reason.FORBIDDEN,
    )


def _only_of(field: str, provider: GangProvider, others: str) -> Rule:
    """A field that one provider has; where the operator's default decides, nobody knows whether it would be heeded."""
    return Rule(
        "spec.scheduling.gang",
        f"!has(self.{field}) || (has(self.provider) && self.provider == '{provider.value}')",
        lambda gang: gang.get(field) is None or gang.get("provider") == provider,
        f"{others}: set provider to {provider.value}, or remove {field}",
        field,
        Reason.FORBIDDEN,
    )


def _in_form(at: str, field: str, form: str, message: str) -> Rule:
    escaped = form.replace("\\", "\\\\")
    return Rule(
        at,
        f"!has(self.{field}) || self.{field}.matches('^{escaped}$')",
        lambda block: block.get(field) is None or re.fullmatch(form, block[field]) is not None,
        message,
        field,
    )


_IS_NO_LABEL = "is no label of nodes; write its key alone, such as topology.kubernetes.io/zone"
GANG_RULES = (
    _not_for_one_pod("gang"),
    Rule(
        "spec",
        "!has(self.scheduling.gang) || !has(self.scheduling.gang.minAvailable) || "
        f"self.scheduling.gang.minAvailable <= {_TASKS}",
        lambda spec: ((_scheduling(spec).get("gang") or {}).get("minAvailable") or 0) <= _tasks(spec),
        "the job has fewer pods that train than this, and would wait for ever (the evaluator is outside of the gang): "
        "write at most their number, or leave minAvailable out for all of them",
        "scheduling.gang.minAvailable",
    ),
    _only_of("queue", GangProvider.VOLCANO, "only Volcano has these queues"),
    _only_of("timeoutSeconds", GangProvider.COSCHEDULING, "the other providers let a gang wait as long as it takes"),
    _in_form(
        "spec.scheduling.gang",
        "queue",
        _SUBDOMAIN,
        "is no name of a Queue; write lower-case letters, digits, dashes and dots, such as team-a",
    ),
    _not_for_one_pod("topology"),
    Rule(
        "spec.scheduling.topology",
        "has(self.required) != has(self.preferred)",
        lambda topology: (topology.get("required") is None) != (topology.get("preferred") is None),
        "write one of required (pods wait for nodes that are near each other) and preferred (they go elsewhere where "
        "there are none), each with a label of nodes, such as {required: topology.kubernetes.io/zone}",
    ),
    _in_form("spec.scheduling.topology", "required", _LABEL, _IS_NO_LABEL),
    _in_form("spec.scheduling.topology", "preferred", _LABEL, _IS_NO_LABEL),
)
