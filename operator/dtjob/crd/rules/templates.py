# SPDX-License-Identifier: Apache-2.0
"""A role's pod template and its training container, in CEL."""

from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.crd.rule import Reason, Rule


def pod_frame(role: str) -> str:
    """CEL: if the role has a pod template, `{}` holds.

    It takes `self.replicaSpecs` once, because a look at a field costs as much as the block around it has fields.
    """
    block = f"r.{role}"
    there = f"has({block}) && has({block}.template) && has({block}.template.spec)"
    return f"[self.replicaSpecs].all(r, !({there})) || {{}}"


def pod(role: str) -> str:
    """CEL: the pod spec of the role's template. It begins with self, so an API server knows how long its lists are."""
    return f"self.replicaSpecs.{role}.template.spec"


def each_training(role: str) -> str:
    """CEL: `{}` holds of the training container, `c`, of the role's template, if it has one."""
    containers = f"{pod(role)}.containers"
    return f"!has({containers}) || {containers}.all(c, c.name != '{TRAINING_CONTAINER}' || {{}})"


def of_training(role: str, cel: str, message: str) -> Rule:
    """A rule on the training container, `c`, of the role's template."""
    return Rule(
        "spec",
        cel,
        message,
        f"replicaSpecs.{role}.template.spec.containers",
        Reason.FORBIDDEN,
        at_creation=True,  # what runs in a container stays (`changes.py`)
        frame=pod_frame(role).replace("{}", each_training(role)),
    )
