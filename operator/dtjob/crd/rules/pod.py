# SPDX-License-Identifier: Apache-2.0
"""Rules about pod templates: what belongs to dtjob in a pod, and what a template says twice."""

from __future__ import annotations

from dtjob.api.job import GROUP, MANAGED_BY_LABEL
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Reason, Rule
from dtjob.crd.rules.templates import of_training

_POD = "spec.replicaSpecs.*.template.spec"
_QUANTITY = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$"
"""The form of a Kubernetes quantity (apimachinery's resource.Quantity)."""


def _ours(field: str, advice: str) -> Rule:
    return Rule(
        _POD,
        f"!has(self.{field})",
        f"{field} belongs to dtjob: {advice}",
        field,
        Reason.FORBIDDEN,
    )


def _environment(at: str) -> Rule:
    return Rule(
        at,
        "self.all(v, !v.name.startsWith('DTJOB_'))",
        "variables that begin with DTJOB_ belong to dtjob: remove them",
        reason=Reason.FORBIDDEN,
    )


_TF_CONFIG_IS_OURS = "TF_CONFIG belongs to dtjob"
_SETS_TF_CONFIG = "has(c.env) && c.env.exists(v, v.name == 'TF_CONFIG')"


def _tf_config_of_the_program(role: str) -> Rule:
    """With a program the supervisor makes TF_CONFIG; an image's own command may be given another one."""
    return of_training(
        role, f"!({_SETS_TF_CONFIG}) || !has(self.program)", f"{_TF_CONFIG_IS_OURS}: remove it, or remove program"
    )


def _has_image(container: str) -> Rule:
    return Rule(
        f"{_POD}.{container}[]",
        f"self.name == '{TRAINING_CONTAINER}' || has(self.image)",
        f"container {{}} has no image: add its image (only the container {TRAINING_CONTAINER} takes spec.image)",
        "image",
        Reason.REQUIRED,
        at_creation=True,  # what runs in a container stays (`suspended_roles.py`)
        names="name",
    )


def _quantities(at: str) -> Rule:
    return Rule(
        at,
        f"self.all(k, type(self[k]) == int || string(self[k]).matches('{_QUANTITY}'))",
        "must be Kubernetes quantities, such as 4, 500m or 16Gi (not 16GB)",
    )


def _program_decides(role: str) -> Rule:
    """With a program, the training container's command and args are dtjob's."""
    return of_training(
        role,
        "!(has(c.command) || has(c.args)) || !has(self.program)",
        f"program says what the container {TRAINING_CONTAINER} runs: remove its command and args and use "
        "program.entrypoint and program.args, or remove program",
    )


POD_RULES = (
    _ours("hostname", "remove it"),
    _ours("subdomain", "remove it"),
    _ours("restartPolicy", "remove it and set spec.failurePolicy"),
    Rule(
        _POD,
        "!has(self.containers) || !has(self.initContainers) || "
        "self.containers.all(c, !self.initContainers.exists(d, d.name == c.name))",
        "an init container has the name of a container: rename one of them",
        "initContainers",
    ),
    Rule(
        _POD,
        f"!has(self.initContainers) || !self.initContainers.exists(c, c.name == '{TRAINING_CONTAINER}')",
        f"{TRAINING_CONTAINER} is the name of the training container: rename the init container",
        "initContainers",
    ),
    *(_has_image(containers) for containers in ("containers", "initContainers")),
    *(_environment(f"{_POD}.{containers}[].env") for containers in ("containers", "initContainers")),
    _environment("spec.program.env"),
    Rule(
        "spec.program.env",
        "self.all(v, v.name != 'TF_CONFIG')",
        f"{_TF_CONFIG_IS_OURS}: remove it",
        reason=Reason.FORBIDDEN,
    ),
    *(_tf_config_of_the_program(role.value) for role in Role),
    Rule(
        "spec.replicaSpecs.*.template.metadata.labels",
        f"self.all(k, !k.startsWith('{GROUP}/'))",
        f"labels under {GROUP}/ belong to dtjob: remove them",
        reason=Reason.FORBIDDEN,
    ),
    Rule(
        "spec.replicaSpecs.*.template.metadata.labels",
        f"!('{MANAGED_BY_LABEL}' in self)",
        f"{MANAGED_BY_LABEL} belongs to dtjob: remove it",
        reason=Reason.FORBIDDEN,
    ),
    *(_quantities(f"spec.replicaSpecs.*.resources.{kind}") for kind in ("limits", "requests")),
    *(_program_decides(role.value) for role in Role),
)
