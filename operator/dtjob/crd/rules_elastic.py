"""Rules about elastic workers: their bounds, what they need, and when their number may change."""

from __future__ import annotations

from dtjob.api.replicas import Replica
from dtjob.crd.rule import Reason, Rule, Value

_ELASTIC = "(has(self.replicas.worker.min) || has(self.replicas.worker.max))"


def _count(worker: Value) -> int:
    return int(worker.get("count", Replica().count))


def is_elastic(worker: Value) -> bool:
    """Whether the number of these workers may change."""
    return worker is not None and (worker.get("min") is not None or worker.get("max") is not None)


def _has_min(spec: Value) -> bool:
    return (spec["replicas"].get("worker") or {}).get("min") is not None


ELASTIC_RULES = (
    Rule(
        "spec.replicas.worker",
        "!has(self.min) || self.min <= self.count",
        lambda worker: worker.get("min") is None or worker["min"] <= _count(worker),
        "count is below min, the least with which the job trains: use a higher count, or a lower min",
        "count",
    ),
    Rule(
        "spec.replicas.worker",
        "!has(self.max) || self.count <= self.max",
        lambda worker: worker.get("max") is None or _count(worker) <= worker["max"],
        "count is above max: use a lower count, or a higher max",
        "count",
    ),
    Rule(
        "spec",
        f"!has(self.program) || !has(self.replicas.worker) || !{_ELASTIC} || has(self.checkpoint)",
        lambda spec: (
            spec.get("program") is None
            or not is_elastic(spec["replicas"].get("worker"))
            or spec.get("checkpoint") is not None
        ),
        "elastic workers go on at the last checkpoint whenever their number changes: add checkpoint, or remove "
        "replicas.worker.min and max",
        "checkpoint",
        Reason.REQUIRED,
    ),
    Rule(
        "spec",
        "!has(self.runPolicy.elasticity) || has(self.replicas.worker) && has(self.replicas.worker.min)",
        lambda spec: (spec.get("runPolicy") or {}).get("elasticity") is None or _has_min(spec),
        "without replicas.worker.min the number of workers changes only with count: add min, or remove elasticity",
        "runPolicy.elasticity",
        Reason.FORBIDDEN,
    ),
)
