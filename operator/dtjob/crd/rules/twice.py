# SPDX-License-Identifier: Apache-2.0
"""Rules about what a manifest says twice: in dtjob's short form and in a pod template."""

from __future__ import annotations

from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Rule
from dtjob.crd.rules.templates import of_training, pod, pod_frame

_IN_TEMPLATE = "replicaSpecs.{role}.template.spec.containers[name=" + TRAINING_CONTAINER + "]"


def _template(role: str) -> str:
    return _IN_TEMPLATE.format(role=role)


def _image(role: str) -> Rule:
    return of_training(
        role,
        "!has(c.image) || !has(self.image)",
        f"spec.image and spec.{_template(role)}.image both set the image: keep one of them",
    )


def _environment(role: str) -> Rule:
    # A look for each name in the list of names: pairs of variables would pass the API server's budget for a rule.
    named = "[self.program.env.map(v, v.name)].exists(names, c.env.exists(v, v.name in names))"
    return of_training(
        role,
        f"!has(c.env) || !has(self.program) || !has(self.program.env) || !{named}",
        f"spec.program.env and spec.{_template(role)}.env both set a variable of one name: keep one of them",
    )


def _priority_class(role: str) -> Rule:
    return Rule(
        "spec",
        f"!has({pod(role)}.priorityClassName) || !has(self.scheduling.priorityClassName)",
        f"spec.scheduling.priorityClassName and spec.replicaSpecs.{role}.template.spec.priorityClassName both set the "
        "PriorityClass: keep one of them",
        f"replicaSpecs.{role}.template.spec.priorityClassName",
        frame=pod_frame(role),
    )


TWICE_RULES = (
    Rule(
        "spec.replicaSpecs.*",
        "!has(self.resources) || !has(self.template) || !has(self.template.spec) || "
        "!has(self.template.spec.containers) || "
        f"!self.template.spec.containers.exists(c, c.name == '{TRAINING_CONTAINER}' && has(c.resources))",
        f"resources and template.spec.containers[name={TRAINING_CONTAINER}].resources both set the resources: keep "
        "one of them",
        "resources",
    ),
    *(_image(role.value) for role in Role),
    *(_environment(role.value) for role in Role),
    *(_priority_class(role.value) for role in Role),
)
