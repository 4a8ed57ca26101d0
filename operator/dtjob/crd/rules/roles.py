# SPDX-License-Identifier: Apache-2.0
"""Rules about the job's name, its strategy and the roles that the strategy takes."""

from __future__ import annotations

import re

from dtjob.api.spec.network import Network
from dtjob.api.spec.replica_specs import MAX_REPLICAS, Role
from dtjob.api.spec.strategy import Strategy
from dtjob.crd.rule import Reason, Rule, Value, default_of
from dtjob.crd.rules.elastic import replicas_of

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


def _tasks(job: Value, role: str) -> int:
    """How many tasks of a role the job has."""
    block = job["spec"]["replicaSpecs"].get(role)
    return 0 if block is None else replicas_of(block)


def _most(job: Value, role: str) -> int:
    """How many tasks of a role the job may come to have."""
    bound = (job["spec"].get("elasticPolicy") or {}).get("maxReplicas") if role == Role.WORKER else None
    return max(_tasks(job, role), bound or 0) if _tasks(job, role) else 0


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


def cluster_spec_length(name: str, counts: dict[str, int], port: int) -> int:
    """Characters of the compact JSON cluster spec of a job with these counts by role (0: no such role).

    An address is `"<name>-<role>-<index>.<name>:<port>"`; the indexes' digits are summed without counting through them.
    """
    total = 1  # two braces, less the comma that the first role does not have
    for role, count in counts.items():
        if count:
            frame = 2 * len(name) + len(role) + len(str(port)) + 7  # two quotes, two dashes, dot, colon, comma
            digits = count + sum(max(0, count - power) for power in (10, 100, 1000))
            total += len(role) + 5 + count * frame + digits  # its key with quotes, colon, brackets, comma, less a comma
    return total


def _cluster_spec_fits(job: Value) -> bool:
    counts = {role.value: _tasks(job, role.value) for role in ADDRESSED_ROLES}
    port = (job["spec"].get("network") or {}).get("port", default_of(Network, "port"))
    return cluster_spec_length(job["metadata"]["name"], counts, port) <= CLUSTER_SPEC_LIMIT


def _cluster_spec_cel() -> str:
    """The same sum in CEL, for jobs of so many tasks that they might not fit."""
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
        lambda job: (
            not _most(job, role) or len(f"{job['metadata']['name']}-{role}-{_most(job, role) - 1}") <= NAME_LIMIT
        ),
        f"the name is too long: the last {role}'s host name, NAME-{role}-INDEX, has more than {NAME_LIMIT} characters: "
        f"use a shorter name, of at most {room}",
        "metadata.name",
    )


NAME_RULES = (
    Rule(
        "",
        f"self.metadata.name.matches('{_DNS_LABEL}')",
        lambda job: re.fullmatch(_DNS_LABEL[1:-1], job["metadata"]["name"]) is not None,
        "the name must be a DNS label, because it is part of host names: lower-case letters, digits and dashes, first "
        "a letter, last no dash, such as digits-1",
        "metadata.name",
    ),
    *(_host_names(role.value) for role in Role),
    Rule(
        "",
        _cluster_spec_cel(),
        _cluster_spec_fits,
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
        lambda spec: role not in spec["replicaSpecs"] or spec["strategy"] in strategies,
        advice,
        f"replicaSpecs.{role}",
        Reason.FORBIDDEN,
    )


def _needs(strategies: list[str], roles: tuple[str, ...], message: str) -> Rule:
    """One of these strategies needs one of these roles."""
    return Rule(
        "spec",
        f"!(self.strategy in [{', '.join(repr(name) for name in strategies)}]) || "
        + " || ".join(f"has(self.replicaSpecs.{role})" for role in roles),
        lambda spec: spec["strategy"] not in strategies or any(role in spec["replicaSpecs"] for role in roles),
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
        lambda spec: spec["strategy"] not in _PS or spec.get("program") is None or "chief" in spec["replicaSpecs"],
        "ParameterServer needs a chief, which coordinates the training: add `chief: {}` (optional without program)",
        "replicaSpecs.chief",
        Reason.REQUIRED,
    ),
    _needs(_PS, ("worker",), "ParameterServer needs workers, which train: add `worker: {replicas: 2}`"),
    _needs(_PS, ("ps",), "ParameterServer needs parameter servers, which hold the variables: add `ps: {replicas: 1}`"),
)
