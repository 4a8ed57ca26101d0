# SPDX-License-Identifier: Apache-2.0
"""Rules about whose end ends the job."""

from __future__ import annotations

from dtjob.api.spec.checkpoint import MountOn
from dtjob.api.spec.strategy import Strategy
from dtjob.api.spec.success_policy import SuccessPolicy
from dtjob.crd.rule import Reason, Rule, Value

_FIELD = "successPolicy"
_FRAME = f"!has(self.{_FIELD}) || self.{_FIELD} != '{SuccessPolicy.ALL_WORKERS.value}' || {{}}"
_PS = Strategy.PARAMETER_SERVER.value


def _all_workers(spec: Value) -> bool:
    return bool(spec.get(_FIELD) == SuccessPolicy.ALL_WORKERS.value)


def _evaluator_follows_chief(spec: Value) -> bool:
    storage = (spec.get("checkpoint") or {}).get("storage") or {}
    mounts = storage.get("volume") is not None and storage.get("mountOn", MountOn.CHIEF) == MountOn.CHIEF
    return mounts and "evaluator" in spec["replicaSpecs"]


SUCCESS_RULES = (
    Rule(
        "spec",
        "has(self.replicaSpecs.worker)",
        lambda spec: not _all_workers(spec) or "worker" in spec["replicaSpecs"],
        "this job has no workers: remove successPolicy, and the chief decides",
        _FIELD,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
    Rule(
        "spec",
        f"!has(self.program) || self.strategy != '{_PS}'",
        lambda spec: not _all_workers(spec) or spec.get("program") is None or spec["strategy"] != _PS,
        "workers of ParameterServer do not end by themselves: remove successPolicy, and the chief decides",
        _FIELD,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
    Rule(
        "spec",
        "!has(self.replicaSpecs.evaluator) || !has(self.checkpoint) || "
        "!has(self.checkpoint.storage.volume) || "
        f"(has(self.checkpoint.storage.mountOn) && self.checkpoint.storage.mountOn != '{MountOn.CHIEF.value}')",
        lambda spec: not _all_workers(spec) or not _evaluator_follows_chief(spec),
        "the evaluator needs the chief's node, and the chief may end before the workers: set "
        "checkpoint.storage.mountOn to All, or remove successPolicy",
        _FIELD,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
)
