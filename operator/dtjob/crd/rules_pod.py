"""Rules about pod templates: what belongs to dtjob in a pod, and what a template says twice."""

from __future__ import annotations

import re
from itertools import product

from dtjob.api.job import GROUP, MANAGED_BY_LABEL
from dtjob.api.pod_template import TRAINING_CONTAINER
from dtjob.api.replicas import Role
from dtjob.crd.rule import Reason, Rule, Value

_POD = "spec.replicas.*.template.spec"
_QUANTITY = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$"
"""The form of a Kubernetes quantity (apimachinery's resource.Quantity)."""


def _ours(field: str, mend: str) -> Rule:
    return Rule(
        _POD,
        f"!has(self.{field})",
        lambda spec: field not in spec,
        f"{field} belongs to dtjob: {mend}",
        field,
        Reason.FORBIDDEN,
    )


def _environment(at: str) -> Rule:
    return Rule(
        at,
        "self.all(v, !v.name.startsWith('DTJOB_'))",
        lambda env: not any(v["name"].startswith("DTJOB_") for v in env),
        "variables that begin with DTJOB_ belong to dtjob, which sets them for each task: remove them",
        reason=Reason.FORBIDDEN,
    )


def _text(at: str) -> Rule:
    return Rule(
        at,
        "self.all(v, !has(v.value) || type(v.value) != int)",
        lambda env: not any(isinstance(v.get("value"), int) for v in env),
        "a variable's value is text: put it into quotes",
        for_new=True,
    )


_TF_CONFIG_IS_OURS = "TF_CONFIG belongs to dtjob, which sets it for each task"
_SETS_TF_CONFIG = "has(c.env) && c.env.exists(v, v.name == 'TF_CONFIG')"


def _sets_tf_config(container: Value) -> bool:
    return any(variable["name"] == "TF_CONFIG" for variable in container.get("env") or [])


def _tf_config_of_the_program(role: str) -> Rule:
    """With a program the supervisor makes TF_CONFIG; an image's own command may be given another one."""
    replica = f"self.replicas.{role}"
    return Rule(
        "spec",
        f"!has(self.program) || !has({replica}) || !({_training_cel(replica, _SETS_TF_CONFIG)})",
        lambda spec: (
            spec.get("program") is None
            or not any(_sets_tf_config(one) for one in _training(spec["replicas"].get(role) or {}))
        ),
        f"{_TF_CONFIG_IS_OURS}: remove it, or remove program and let the image's own command read yours",
        f"replicas.{role}.template.spec.containers",
        Reason.FORBIDDEN,
        for_new=True,  # what runs in a container stays (`suspended_roles.py`), but in jobs with a key twice
    )


def _names(spec: Value, containers: str) -> set[str]:
    return {container["name"] for container in spec.get(containers) or []}


def _quantities(at: str) -> Rule:
    return Rule(
        at,
        f"self.all(k, type(self[k]) == int || string(self[k]).matches('{_QUANTITY}'))",
        lambda amounts: all(isinstance(v, int) or re.fullmatch(_QUANTITY[1:-1], v) for v in amounts.values()),
        "an amount must be a Kubernetes quantity, such as 4, 500m or 16Gi (not 16GB)",
    )


def _training(replica: Value) -> list[Value]:
    """The template's training container, as a list of none or one."""
    spec = (replica.get("template") or {}).get("spec") or {}
    return [container for container in spec.get("containers") or [] if container["name"] == TRAINING_CONTAINER]


def _training_cel(replica: str, condition: str) -> str:
    """CEL: the template of this replica has a training container for which `condition` (of `c`) holds."""
    spec = f"{replica}.template.spec"
    return (
        f"has({replica}.template) && has({spec}) && has({spec}.containers) && "
        f"{spec}.containers.exists(c, c.name == '{TRAINING_CONTAINER}' && {condition})"
    )


def _program_decides(role: str, field: str) -> Rule:
    """With a program, the training container's command and args are dtjob's."""
    replica = f"self.replicas.{role}"

    def holds(spec: Value) -> bool:
        training = _training(spec["replicas"].get(role) or {})
        return spec.get("program") is None or not any(field in container for container in training)

    return Rule(
        "spec",
        f"!has(self.program) || !has({replica}) || !({_training_cel(replica, f'has(c.{field})')})",
        holds,
        f"the container {TRAINING_CONTAINER} has {field} of its own, but program says what runs: use program.entry and "
        f"program.args, or remove program",
        f"replicas.{role}.template.spec.containers",
        Reason.FORBIDDEN,
        for_new=True,  # what runs in a container stays (`suspended_roles.py`), but in jobs with a key twice
    )


POD_RULES = (
    _ours("hostname", "TF_CONFIG holds the host names that it gives to pods; remove it"),
    _ours("subdomain", "it is the name of the job's Service; remove it"),
    _ours("restartPolicy", "it replaces failed pods itself; remove it and set spec.failurePolicy"),
    Rule(
        _POD,
        "!has(self.containers) || !has(self.initContainers) || "
        "self.containers.all(c, !self.initContainers.exists(d, d.name == c.name))",
        lambda spec: not _names(spec, "containers") & _names(spec, "initContainers"),
        "an init container has the name of a container: give each a name of its own",
        "initContainers",
    ),
    Rule(
        _POD,
        f"!has(self.initContainers) || !self.initContainers.exists(c, c.name == '{TRAINING_CONTAINER}')",
        lambda spec: TRAINING_CONTAINER not in _names(spec, "initContainers"),
        f"{TRAINING_CONTAINER} is the name of the training container: give the init container another name",
        "initContainers",
    ),
    *(_environment(f"{_POD}.{containers}[].env") for containers in ("containers", "initContainers")),
    _environment("spec.program.env"),
    *(_text(f"{_POD}.{containers}[].env") for containers in ("containers", "initContainers")),
    _text("spec.program.env"),
    Rule(
        "spec.program.env",
        "self.all(v, v.name != 'TF_CONFIG')",
        lambda env: not any(variable["name"] == "TF_CONFIG" for variable in env),
        f"{_TF_CONFIG_IS_OURS}: remove it",
        reason=Reason.FORBIDDEN,
    ),
    *(_tf_config_of_the_program(role.value) for role in Role),
    Rule(
        "spec.replicas.*.template.metadata.labels",
        f"self.all(k, !k.startsWith('{GROUP}/'))",
        lambda labels: not any(name.startswith(f"{GROUP}/") for name in labels),
        f"labels under {GROUP}/ belong to dtjob, which finds its pods by them: remove them",
        reason=Reason.FORBIDDEN,
    ),
    Rule(
        "spec.replicas.*.template.metadata.labels",
        f"!('{MANAGED_BY_LABEL}' in self)",
        lambda labels: MANAGED_BY_LABEL not in labels,
        f"{MANAGED_BY_LABEL} says that dtjob manages the pods: remove it",
        reason=Reason.FORBIDDEN,
        for_new=True,
    ),
    Rule(
        "spec.replicas.*",
        f"!has(self.resources) || !({_training_cel('self', 'has(c.resources)')})",
        lambda replica: (
            replica.get("resources") is None or not any("resources" in container for container in _training(replica))
        ),
        f"resources stand here and in the template's container {TRAINING_CONTAINER} too: keep one of them",
        "resources",
    ),
    *(_quantities(f"spec.replicas.*.resources.{kind}") for kind in ("limits", "requests")),
    *(_program_decides(role.value, field) for role, field in product(Role, ("command", "args"))),
)
