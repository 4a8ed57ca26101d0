# SPDX-License-Identifier: Apache-2.0
"""One TFJob of kubeflow.org/v1 as a DistributedTrainingJob. docs/migrate/tfjob.md lists each field."""

from dataclasses import dataclass
from typing import Any

from dtjob.api.job import API_VERSION, KIND
from dtjob.api.spec.network import Network
from dtjob.api.spec.replica_specs import Role
from dtjob.cli.convert.containers import command, port_of, sets_tf_config, without_our_ports, without_tf_config
from dtjob.cli.convert.fields import Fields, mapping, warn_of_others, without_nulls
from dtjob.cli.convert.findings import CannotConvert, Finding, Findings
from dtjob.cli.convert.names import warn_of_hosts
from dtjob.cli.convert.others import of_version
from dtjob.cli.convert.program import Command, common_program
from dtjob.cli.convert.roles import (
    Replicas,
    is_distributed,
    replicas_of,
    stands_alone,
    strategy_of,
    warn_of_empty_roles,
)
from dtjob.cli.convert.run_policy import Written, life_of, success_policy
from dtjob.cli.convert.scheduling import scheduling
from dtjob.cli.convert.template import Template, read_template
from dtjob.crd.answers.problems import problems
from dtjob.manifests.generated_name import with_a_name

TFJOB = "TFJob"
TFJOB_VERSION = "kubeflow.org/v1"
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC = ("runPolicy", "successPolicy", "tfReplicaSpecs", "enableDynamicWorker")


@dataclass(frozen=True)
class Converted:
    """A dtjob, and what there is to say of it."""

    manifest: Fields
    findings: list[Finding]


def is_tfjob(manifest: Any) -> bool:
    """Whether this is a TFJob, of whichever version."""
    return isinstance(manifest, dict) and manifest.get("kind") == TFJOB


def convert(manifest: Fields, *, program: bool = False) -> Converted:
    """The dtjob of this TFJob. `program`: dtjob's trainer runs the script, where that can be. Raises CannotConvert."""
    if not program:
        return _converted(manifest, None, Findings())
    said = Findings()
    found, why = common_program(_commands(manifest))
    if found is not None:
        try:
            return _converted(manifest, found, Findings())
        except CannotConvert as error:
            why = str(error)
    result = _converted(manifest, None, said)
    said.warn("--program", f"the image's own command stays: {why}")
    return Converted(result.manifest, said.found)


def _converted(manifest: Fields, program: Command | None, said: Findings) -> Converted:
    if manifest.get("apiVersion") != TFJOB_VERSION:
        version = manifest.get("apiVersion")
        why = of_version(version)
        raise CannotConvert(
            f"apiVersion: {version} {why}" if why else f"apiVersion: must be {TFJOB_VERSION}, not {version!r}"
        )
    warn_of_empty_roles(manifest, said)
    whole = without_nulls(manifest)
    warn_of_others(whole, "", _TOP, said)
    if "status" in whole:
        said.note("status", "dtjob writes its own; it is left out")
    spec = mapping(whole.get("spec"), "spec")
    warn_of_others(spec, "spec", _SPEC, said)
    made = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata_of(mapping(whole.get("metadata"), "metadata"), said),
        "spec": _spec(spec, str(mapping(whole.get("metadata"), "metadata").get("name", "")), program, said),
    }
    if found := problems(with_a_name(made)):
        raise CannotConvert("; ".join(map(str, found)))
    return Converted(made, said.found)


def _spec(spec: Fields, name: str, program: Command | None, said: Findings) -> Fields:
    replicas = replicas_of(spec, said)
    templates = {role: read_template(one.template, f"{one.path}.template", said) for role, one in replicas.items()}
    port = port_of(next(iter(templates.values())).training)
    images = {template.training["image"] for template in templates.values()}
    image = images.pop() if len(images) == 1 else None
    run_policy = mapping(spec.get("runPolicy"), "spec.runPolicy")
    placed = scheduling(run_policy, replicas, [template.pod for template in templates.values()], said)
    blocks = {
        role.value: _role(replicas, role, template, port, image is not None, program, said)
        for role, template in templates.items()
    }
    for role, template in templates.items():
        pod = {**template.pod, "containers[name=tensorflow]": template.training}
        warn_of_hosts(pod, f"{replicas[role].path}.template.spec", name, said)
    if stands_alone(replicas) and Role.WORKER in replicas:
        blocks = {"chief": {key: one for key, one in blocks.pop("worker").items() if key != "replicas"}, **blocks}
        said.note(replicas[Role.WORKER].path, "the only task that trains is the chief in dtjob")
        replicas = {Role.CHIEF if role is Role.WORKER else role: one for role, one in replicas.items()}
    own = any(sets_tf_config(template.training) for template in templates.values())
    if not is_distributed(replicas) and program is None and not own:
        said.note("spec", "TF_CONFIG is set in dtjob, also for a job of one task")
    if program is not None:
        said.warn("--program", "the image must be built on dtjob's trainer image")
    return {
        "strategy": strategy_of(replicas).value,
        **({} if image is None else {"image": image}),
        **({} if program is None else {"program": program.as_program()}),
        "replicaSpecs": blocks,
        **_elastic(spec, replicas, said),
        **success_policy(spec.get("successPolicy"), replicas, said),
        **life_of(Written(run_policy, replicas, program is not None), said),
        **({"scheduling": placed} if placed else {}),
        **_network(templates, port, said),
    }


def _role(
    replicas: Replicas,
    role: Role,
    template: Template,
    port: int,
    one_image: bool,
    program: Command | None,
    said: Findings,
) -> Fields:
    """The block of one role in replicaSpecs."""
    path = f"{template.path}.spec.containers[name=tensorflow]"
    training = without_our_ports(template.training, port, path, said)
    if program is not None:
        training = without_tf_config(training, path, "the trainer of dtjob makes it; it is left out", said)
        training = {name: value for name, value in training.items() if name not in ("command", "args")}
    elif is_distributed(replicas):
        why = "the operator of TFJob appends its own, which counts in a pod, so dtjob's is used; it is left out"
        training = without_tf_config(training, path, why, said)
    if one_image:
        training = {name: value for name, value in training.items() if name != "image"}
    if not training.get("env", True):
        training = {name: value for name, value in training.items() if name != "env"}
    resources = training.get("resources") or {}
    apart = bool(resources) and not set(resources) - {"limits", "requests"}
    if apart:
        training = {name: value for name, value in training.items() if name != "resources"}
    containers = [training, *template.pod["containers"]]
    count = replicas[role].replicas
    return {
        **({"replicas": count} if role in (Role.WORKER, Role.PS) else {}),
        **({"resources": resources} if apart else {}),
        "template": {
            **({"metadata": template.metadata} if template.metadata else {}),
            "spec": {**template.pod, "containers": containers},
        },
    }


def _elastic(spec: Fields, replicas: Replicas, said: Findings) -> Fields:
    path = "spec.enableDynamicWorker"
    if spec.get("enableDynamicWorker") not in (None, True, False):
        raise CannotConvert(f"{path}: must be true or false")
    if not spec.get("enableDynamicWorker"):
        return {}
    if Role.WORKER not in replicas:
        said.warn(path, "one task trains, whose number does not change; it is left out")
        return {}
    said.warn(
        path,
        "becomes elasticPolicy. TFJob lets workers come and go with a TF_CONFIG that has only its own task and ps; in "
        "dtjob a change restarts the group from the last checkpoint, with all tasks in TF_CONFIG",
    )
    return {"elasticPolicy": {}}


def _network(templates: dict[Role, Template], port: int, said: Findings) -> Fields:
    """The port of TensorFlow, and no NetworkPolicy where a container has ports for others."""
    network: Fields = {} if port == Network().port else {"port": port}
    for template in templates.values():
        kept = without_our_ports(template.training, port, template.path, Findings()).get("ports")
        if kept or any(one.get("ports") for one in template.pod["containers"]):
            network["isolation"] = "None"
            path = f"{template.path}.spec.containers"
            said.note(path, "has ports beside TensorFlow's, so network.isolation is None: anybody may reach the pods")
            break
    return {"network": network} if network else {}


def _commands(manifest: Fields) -> list[list[Any]]:
    """The commands of the training containers, as far as they can be read."""
    said = Findings()
    replicas = replicas_of(mapping(without_nulls(manifest).get("spec"), "spec"), said)
    return [command(read_template(one.template, f"{one.path}.template", said).training) for one in replicas.values()]


_KEPT = ("name", "generateName", "namespace", "labels", "annotations")
_OF_A_SERVER = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"),
    "deletionGracePeriodSeconds",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def metadata_of(metadata: Fields, said: Findings) -> Fields:
    """The dtjob's metadata."""
    found = {name: metadata[name] for name in _KEPT if name in metadata}
    annotations = dict(mapping(found.get("annotations"), "metadata.annotations"))
    if annotations.pop(_LAST_APPLIED, None) is not None:
        said.note(f"metadata.annotations.{_LAST_APPLIED}", "kubectl writes it; it is left out")
        found["annotations"] = annotations
    for name in metadata:
        if name in _OF_A_SERVER:
            said.note(f"metadata.{name}", "the API server writes it; it is left out")
        elif name not in _KEPT:
            said.warn(f"metadata.{name}", "belongs to the TFJob's own object; it is left out")
    return {name: value for name, value in found.items() if value not in ({}, None)}
