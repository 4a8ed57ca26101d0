# SPDX-License-Identifier: Apache-2.0
"""Rules about what a manifest says twice: in dtjob's short form and in a pod template."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Reason, Rule, Value
from dtjob.crd.rules.templates import pod, pod_frame, training, training_frame

_IN_TEMPLATE = "replicaSpecs.{role}.template.spec.containers[name=" + TRAINING_CONTAINER + "]"


def _template(role: str) -> str:
    return _IN_TEMPLATE.format(role=role)


def _of_training(role: str, cel: str, holds: Callable[[Value], bool], message: str) -> Rule:
    return Rule(
        "spec",
        cel,
        holds,
        f"{message}: keep one of them",
        f"replicaSpecs.{role}.template.spec.containers",
        Reason.FORBIDDEN,
        at_creation=True,  # what runs in a container stays (`suspended_roles.py`)
        frame=training_frame(role),
    )


def _image(role: str) -> Rule:
    return _of_training(
        role,
        "!has(c.image) || !has(self.image)",
        lambda spec: spec.get("image") is None or not any(one.get("image") for one in _training_of(spec, role)),
        f"spec.image and spec.{_template(role)}.image both set the image",
    )


def _environment(role: str) -> Rule:
    # A look for each name in the list of names: pairs of variables would pass the API server's budget for a rule.
    named = "[self.program.env.map(v, v.name)].exists(names, c.env.exists(v, v.name in names))"
    return _of_training(
        role,
        f"!has(c.env) || !has(self.program) || !has(self.program.env) || !{named}",
        lambda spec: not set(_names((spec.get("program") or {}).get("env"))) & set(_template_names(spec, role)),
        f"spec.program.env and spec.{_template(role)}.env both set a variable of one name",
    )


def _priority_class(role: str) -> Rule:
    return Rule(
        "spec",
        f"!has({pod(role)}.priorityClassName) || !has(self.scheduling.priorityClassName)",
        lambda spec: (
            (spec.get("scheduling") or {}).get("priorityClassName") is None
            or _pod(spec, role).get("priorityClassName") is None
        ),
        f"spec.scheduling.priorityClassName and spec.replicaSpecs.{role}.template.spec.priorityClassName both set the "
        "PriorityClass: keep one of them",
        f"replicaSpecs.{role}.template.spec.priorityClassName",
        frame=pod_frame(role),
    )


def _pod(spec: Value, role: str) -> Value:
    return ((spec["replicaSpecs"].get(role) or {}).get("template") or {}).get("spec") or {}


def _training_of(spec: Value, role: str) -> list[Value]:
    return training(spec["replicaSpecs"].get(role) or {})


def _names(env: Value) -> Iterator[str]:
    return (variable["name"] for variable in env or [])


def _template_names(spec: Value, role: str) -> Iterator[str]:
    for container in _training_of(spec, role):
        yield from _names(container.get("env"))


TWICE_RULES = (
    Rule(
        "spec.replicaSpecs.*",
        "!has(self.resources) || !has(self.template) || !has(self.template.spec) || "
        "!has(self.template.spec.containers) || "
        f"!self.template.spec.containers.exists(c, c.name == '{TRAINING_CONTAINER}' && has(c.resources))",
        lambda replica: replica.get("resources") is None or not any("resources" in one for one in training(replica)),
        f"resources and template.spec.containers[name={TRAINING_CONTAINER}].resources both set the resources: keep "
        "one of them",
        "resources",
    ),
    *(_image(role.value) for role in Role),
    *(_environment(role.value) for role in Role),
    *(_priority_class(role.value) for role in Role),
)
