# SPDX-License-Identifier: Apache-2.0
"""Rules about elastic workers: their bounds, and what they need."""

from __future__ import annotations

from dtjob.api.spec.replica_specs import ReplicaSpec
from dtjob.crd.rule import Reason, Rule, Value, default_of

_POLICY = "self.elasticPolicy"
_WORKERS = "self.replicaSpecs.worker"


def replicas_of(block: Value) -> int:
    """How many tasks this block of replicaSpecs asks for."""
    return int(block.get("replicas", default_of(ReplicaSpec, "replicas")))


def _workers(spec: Value) -> Value:
    return spec["replicaSpecs"].get("worker")


def _bound(spec: Value, name: str) -> int | None:
    """The bound of this name, if the job has workers that it is about."""
    found: int | None = (spec.get("elasticPolicy") or {}).get(name)
    return found if _workers(spec) is not None else None


def _holds(spec: Value, name: str, sign: int) -> bool:
    bound = _bound(spec, name)
    return bound is None or sign * replicas_of(_workers(spec)) <= sign * bound


def _within(name: str, comparison: str, sign: int, message: str) -> Rule:
    return Rule(
        "spec",
        f"!has(e.{name}) || !has({_WORKERS}) || {_WORKERS}.replicas {comparison} e.{name}",
        lambda spec: _holds(spec, name, sign),
        message,
        "replicaSpecs.worker.replicas",
        frame=f"!has({_POLICY}) || [{_POLICY}].all(e, {{}})",
    )


ELASTIC_RULES = (
    Rule(
        "spec",
        f"!has({_POLICY}) || has({_WORKERS})",
        lambda spec: spec.get("elasticPolicy") is None or _workers(spec) is not None,
        "elasticPolicy changes the number of workers, and this job has none: add replicaSpecs.worker, or remove "
        "elasticPolicy",
        "elasticPolicy",
        Reason.FORBIDDEN,
    ),
    _within(
        "minReplicas",
        ">=",
        -1,
        "replicas is below elasticPolicy.minReplicas: use more replicas, or a lower minReplicas",
    ),
    _within(
        "maxReplicas",
        "<=",
        1,
        "replicas is above elasticPolicy.maxReplicas: use fewer replicas, or a higher maxReplicas",
    ),
    Rule(
        "spec",
        f"!has({_POLICY}) || !has(self.program) || has(self.checkpoint)",
        lambda spec: None in (spec.get("program"), spec.get("elasticPolicy")) or spec.get("checkpoint") is not None,
        "training continues at the last checkpoint when the number of workers changes: add checkpoint, or remove "
        "elasticPolicy",
        "checkpoint",
        Reason.REQUIRED,
    ),
)
