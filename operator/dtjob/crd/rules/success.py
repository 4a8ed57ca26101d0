# SPDX-License-Identifier: Apache-2.0
"""Rules about whose end ends the job."""

from __future__ import annotations

from dtjob.api.spec.checkpoint import MountOn
from dtjob.api.spec.strategy import Strategy
from dtjob.api.spec.success_policy import SuccessPolicy
from dtjob.crd.rule import Reason, Rule

_FIELD = "successPolicy"
_FRAME = f"!has(self.{_FIELD}) || self.{_FIELD} != '{SuccessPolicy.ALL_WORKERS.value}' || {{}}"
_PS = Strategy.PARAMETER_SERVER.value

SUCCESS_RULES = (
    Rule(
        "spec",
        "has(self.replicaSpecs.worker)",
        "this job has no workers: remove successPolicy, and the chief decides",
        _FIELD,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
    Rule(
        "spec",
        f"!has(self.program) || self.strategy != '{_PS}'",
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
        "the evaluator needs the chief's node, and the chief may end before the workers: set "
        "checkpoint.storage.mountOn to All, or remove successPolicy",
        _FIELD,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
)
