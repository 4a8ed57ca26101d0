# SPDX-License-Identifier: Apache-2.0
"""Rules about elastic workers: their bounds, and what they need."""

from dtjob.crd.rule import Reason, Rule

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
