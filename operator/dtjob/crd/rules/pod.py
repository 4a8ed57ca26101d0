# SPDX-License-Identifier: Apache-2.0
"""Rules about pod templates: what belongs to dtjob in a pod, what a template says twice, and ports."""

from dtjob.api.job import GROUP, MANAGED_BY_LABEL
from dtjob.api.spec.network import Network
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Reason, Rule, default_of
from dtjob.crd.rules.templates import of_training, pod, pod_frame

_POD = "spec.replicaSpecs.*.template.spec"
_CLAIM = "spec.checkpoint.storage.volumeClaimTemplate"
_QUANTITY = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?$"
"""The form of a Kubernetes quantity (apimachinery's resource.Quantity)."""


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
        at_creation=True,  # what runs in a container stays (`changes.py`)
        names="name",
    )


def _labels(at: str) -> Rule:
    return Rule(
        at,
        f"self.all(k, !k.startsWith('{GROUP}/') && k != '{MANAGED_BY_LABEL}')",
        f"labels under {GROUP}/ and {MANAGED_BY_LABEL} belong to dtjob: remove them",
        reason=Reason.FORBIDDEN,
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
    Rule(
        "spec.program.envFrom",
        "self.all(e, has(e.secretRef) != has(e.configMapRef))",
        "each entry must have either secretRef or configMapRef",
    ),
    *(_tf_config_of_the_program(role.value) for role in Role),
    *(_labels(f"{at}.metadata.labels") for at in ("spec.replicaSpecs.*.template", _CLAIM)),
    *(_quantities(f"spec.replicaSpecs.*.resources.{kind}") for kind in ("limits", "requests")),
    *(_quantities(f"{_CLAIM}.spec.resources.{kind}") for kind in ("limits", "requests")),
    *(_program_decides(role.value) for role in Role),
)


def _template(role: str) -> str:
    return f"replicaSpecs.{role}.template.spec.containers[name={TRAINING_CONTAINER}]"


def _image(role: str) -> Rule:
    return of_training(
        role,
        "!has(c.image) || !has(self.image)",
        f"spec.image and spec.{_template(role)}.image both set the image: keep one of them",
    )


def _environment_set_twice(role: str) -> Rule:
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
    *(_environment_set_twice(role.value) for role in Role),
    *(_priority_class(role.value) for role in Role),
)


_OURS_CEL = "([self.network.port] + (has(self.program) ? [self.network.statusPort, self.network.rendezvousPort] : []))"
_CONTAINERS = ("containers", "initContainers")


def _differ(one: str, other: str, used_by: str = "program") -> Rule:
    return Rule(
        "spec",
        f"n.{one} != n.{other}",
        f"{one} (by default {default_of(Network, one)}) and {other} (by default {default_of(Network, other)}) must "
        "differ: change one of them",
        f"network.{one}",
        frame=f"!has(self.{used_by}) || [self.network].all(n, {{}})",
    )


def _not_ours(role: str) -> Rule:
    taken = f"has(c.ports) && c.name != '{TRAINING_CONTAINER}' && c.ports.exists(o, o.containerPort in {_OURS_CEL})"
    free = " && ".join(
        f"(!has({pod(role)}.{among}) || !{pod(role)}.{among}.exists(c, {taken}))" for among in _CONTAINERS
    )
    return Rule(
        "spec",
        free,
        "a container of this template has a port of spec.network: change its containerPort, or change network.port, "
        "network.statusPort or network.rendezvousPort",
        f"replicaSpecs.{role}.template.spec",
        at_creation=True,  # the ports of a container are its program's, which stays
        frame=pod_frame(role),
    )


PORT_RULES = (
    _differ("port", "statusPort"),
    _differ("port", "rendezvousPort"),
    _differ("statusPort", "rendezvousPort"),
    *(_differ("dataPort", other, "replicaSpecs.data") for other in ("port", "statusPort", "rendezvousPort")),
    *(_not_ours(role.value) for role in Role),
)
