# SPDX-License-Identifier: Apache-2.0
"""Rules about the job's name, its strategy and the roles that the strategy takes."""

from dtjob.api.spec.replica_specs import MAX_REPLICAS, Role
from dtjob.api.spec.strategy import Strategy
from dtjob.crd.rule import Reason, Rule

NAME_LIMIT = 63
"""Longest DNS label, and so longest host name of a pod (RFC 1035)."""
CLUSTER_SPEC_LIMIT = 128 * 1024 - 256
"""Longest cluster spec: Linux takes 128 KiB for one environment string (MAX_ARG_STRLEN), and TF_CONFIG has a frame."""
ADDRESSED_ROLES = (Role.CHIEF, Role.WORKER, Role.PS)
"""The roles whose addresses the cluster spec lists, under whichever strategy; the evaluator never is one."""
SINGLE_ROLES = (Role.CHIEF, Role.EVALUATOR)
"""The roles of which a job has one task at most."""
ALWAYS_FIT = 900
"""Tasks whose addresses fit, however long the job's name is."""

_DNS_LABEL = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_SEVERAL_PODS = [strategy.value for strategy in Strategy if not strategy.single_pod]


def _of_spec(cel: str) -> str:
    """CEL at the root: this holds of the spec, `s`, and its replicaSpecs, `r`. Each look at a field costs as much as
    the block around it has fields."""
    return f"[self.spec].all(s, [s.replicaSpecs].all(r, {cel}))"


def _tasks_cel(role: str) -> str:
    """CEL: how many tasks of a role that is there, `r.<role>`, the job has."""
    return "1" if role in SINGLE_ROLES else f"r.{role}.replicas"


def _most_cel(role: str) -> str:
    if role != Role.WORKER:
        return _tasks_cel(role)
    bound = "s.elasticPolicy.maxReplicas"
    return f"(has(s.elasticPolicy) && has({bound}) ? {bound} : {_tasks_cel(role)})"


def _cluster_spec_cel() -> str:
    """CEL: whether the cluster in TF_CONFIG is not too long. It sums the bytes only if there are many tasks."""
    parts, counts = [], []
    for role in ADDRESSED_ROLES:
        count = _tasks_cel(role.value)
        frame = f"(2 * size(self.metadata.name) + size(string(s.network.port)) + {len(role.value) + 7})"
        digits = " + ".join([count, *(f"({count} > {power} ? {count} - {power} : 0)" for power in (10, 100, 1000))])
        whole = f"{len(role.value) + 5} + {count} * {frame} + {digits}"
        parts.append(f"(has(r.{role.value}) ? {whole} : 0)")
        counts.append(f"(has(r.{role.value}) ? {count} : 0)")
    fits = f"1 + {' + '.join(parts)} <= {CLUSTER_SPEC_LIMIT}"
    return _of_spec(f"{' + '.join(counts)} <= {ALWAYS_FIT} || {fits}")


def _host_names(role: str) -> Rule:
    """The longest host name of a role's tasks is a DNS label."""
    beside, most_digits = len(role) + 2, len(str(MAX_REPLICAS - 1))
    room = f"{NAME_LIMIT - beside - 1} characters"
    if role not in SINGLE_ROLES:
        room = f"{NAME_LIMIT - beside} characters less the digits of INDEX"
    length = f"size(self.metadata.name) + {beside} + size(string({_most_cel(role)} - 1))"
    return Rule(
        "",
        f"size(self.metadata.name) <= {NAME_LIMIT - beside - most_digits} || "
        + _of_spec(f"!has(r.{role}) || {length} <= {NAME_LIMIT}"),
        f"the name is too long: the last {role}'s host name, NAME-{role}-INDEX, has more than {NAME_LIMIT} characters: "
        f"use a shorter name, of at most {room}",
        "metadata.name",
    )


NAME_RULES = (
    Rule(
        "",
        f"self.metadata.name.matches('{_DNS_LABEL}')",
        "the name must be a DNS label, because it is part of host names: lower-case letters, digits and dashes, first "
        "a letter, last no dash, such as digits-1",
        "metadata.name",
    ),
    *(_host_names(role.value) for role in Role),
    Rule(
        "",
        _cluster_spec_cel(),
        "the cluster spec, which lists the address of every task, has more than 128 KiB, Linux's limit for an "
        "environment variable: use fewer tasks or a shorter name",
        "spec.replicaSpecs",
    ),
)
"""The only rules at the root, beside the one on how replicas change."""


def _only_under(role: str, strategies: list[str], advice: str) -> Rule:
    return Rule(
        "spec",
        f"!has(self.replicaSpecs.{role}) || self.strategy in [{', '.join(repr(name) for name in strategies)}]",
        advice,
        f"replicaSpecs.{role}",
        Reason.FORBIDDEN,
    )


def _needs(strategies: list[str], roles: tuple[str, ...], message: str) -> Rule:
    return Rule(
        "spec",
        f"!(self.strategy in [{', '.join(repr(name) for name in strategies)}]) || "
        + " || ".join(f"has(self.replicaSpecs.{role})" for role in roles),
        message,
        "replicaSpecs" if len(roles) > 1 else f"replicaSpecs.{roles[0]}",
        Reason.REQUIRED,
    )


_PS = [Strategy.PARAMETER_SERVER.value]
ROLE_RULES = (
    _only_under(
        "worker",
        _SEVERAL_PODS,
        "this strategy trains in one pod, its chief: remove worker, or set strategy to MultiWorkerMirrored or "
        "ParameterServer",
    ),
    _only_under("ps", _PS, "only strategy ParameterServer has parameter servers: remove ps, or set that strategy"),
    _needs(
        [strategy.value for strategy in Strategy if strategy.single_pod],
        ("chief",),
        "this strategy trains in one pod, the chief: add `chief: {}`",
    ),
    _needs(
        [Strategy.MULTI_WORKER_MIRRORED.value],
        ("chief", "worker"),
        "no task trains: add `chief: {}`, or `worker: {replicas: 2}`, or both",
    ),
    Rule(
        "spec",
        "self.strategy != 'ParameterServer' || !has(self.program) || has(self.replicaSpecs.chief)",
        "ParameterServer needs a chief, which coordinates the training: add `chief: {}` (optional without program)",
        "replicaSpecs.chief",
        Reason.REQUIRED,
    ),
    _needs(_PS, ("worker",), "ParameterServer needs workers, which train: add `worker: {replicas: 2}`"),
    _needs(_PS, ("ps",), "ParameterServer needs parameter servers, which hold the variables: add `ps: {replicas: 1}`"),
)
