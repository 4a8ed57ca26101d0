"""Rules about what a manifest says twice: in dtjob's short form and in a pod template."""

from __future__ import annotations

from collections.abc import Iterator

from dtjob.api.pod_template import TRAINING_CONTAINER
from dtjob.api.replica_specs import Role
from dtjob.crd.rule import Rule, Value
from dtjob.crd.templates import training, training_cel

_IN_TEMPLATE = "replicaSpecs.{role}.template.spec.containers[name=" + TRAINING_CONTAINER + "]"


def _template(role: str) -> str:
    return _IN_TEMPLATE.format(role=role)


def _image(role: str) -> Rule:
    replica = f"self.replicaSpecs.{role}"
    return Rule(
        "spec",
        f"!has(self.image) || !has({replica}) || !({training_cel(replica, 'has(c.image)')})",
        lambda spec: spec.get("image") is None or not any(one.get("image") for one in _training_of(spec, role)),
        f"spec.image and spec.{_template(role)}.image both set the image: keep one of them",
        f"replicaSpecs.{role}.template.spec.containers",
        at_creation=True,  # what runs in a container stays (`suspended_roles.py`)
    )


def _environment(role: str) -> Rule:
    replica, given = f"self.replicaSpecs.{role}", "self.program.env"
    shared = f"has(c.env) && sets.intersects({given}.map(v, v.name), c.env.map(v, v.name))"
    return Rule(
        "spec",
        f"!has(self.program) || !has({given}) || !has({replica}) || !({training_cel(replica, shared)})",
        lambda spec: not set(_names((spec.get("program") or {}).get("env"))) & set(_template_names(spec, role)),
        f"spec.program.env and spec.{_template(role)}.env both set a variable of one name: keep one of them",
        f"replicaSpecs.{role}.template.spec.containers",
        at_creation=True,
    )


def _priority_class(role: str) -> Rule:
    template = f"self.replicaSpecs.{role}.template"
    there = f"has(self.replicaSpecs.{role}) && has({template}) && has({template}.spec)"
    return Rule(
        "spec",
        f"!has(self.scheduling.priorityClassName) || !({there} && has({template}.spec.priorityClassName))",
        lambda spec: (
            (spec.get("scheduling") or {}).get("priorityClassName") is None
            or _pod(spec, role).get("priorityClassName") is None
        ),
        f"spec.scheduling.priorityClassName and spec.replicaSpecs.{role}.template.spec.priorityClassName both set the "
        "PriorityClass: keep one of them",
        f"replicaSpecs.{role}.template.spec.priorityClassName",
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
        f"!has(self.resources) || !({training_cel('self', 'has(c.resources)')})",
        lambda replica: replica.get("resources") is None or not any("resources" in one for one in training(replica)),
        f"resources and template.spec.containers[name={TRAINING_CONTAINER}].resources both set the resources: keep "
        "one of them",
        "resources",
    ),
    *(_image(role.value) for role in Role),
    *(_environment(role.value) for role in Role),
    *(_priority_class(role.value) for role in Role),
)
