# SPDX-License-Identifier: Apache-2.0
"""One TFJob of kubeflow.org/v1 as a DistributedTrainingJob. docs/migrate/tfjob.md lists each field."""

from dataclasses import dataclass
from typing import Any

from dtjob.api.job import API_VERSION, KIND
from dtjob.api.spec.network import Network
from dtjob.api.spec.replica_specs import Role
from dtjob.cli.convert.policies import life_of, success_policy
from dtjob.cli.convert.program import common_program
from dtjob.cli.convert.reading import CannotConvert, Fields, Finding, Findings, read
from dtjob.cli.convert.roles import (
    Replica,
    Replicas,
    is_distributed,
    replicas_of,
    stands_alone,
    strategy_of,
    warn_of_empty_roles,
)
from dtjob.cli.convert.scheduling import scheduling
from dtjob.cli.convert.template import drop_our_ports, drop_tf_config, port_of, sets_tf_config, warn_of_hosts
from dtjob.crd.answers.problems import problems
from dtjob.manifests.job_file import with_a_name

TFJOB_VERSION = "kubeflow.org/v1"
_NOT_SERVED = "is a version that no operator serves any more"
_IN_SPEC = (
    f"{_NOT_SERVED}; write kubeflow.org/v1, and move cleanPodPolicy, ttlSecondsAfterFinished, activeDeadlineSeconds "
    "and backoffLimit from spec into spec.runPolicy"
)
_OLD_VERSIONS = {
    **{f"kubeflow.org/{version}": _IN_SPEC for version in ("v1beta2", "v1beta1", "v1alpha2")},
    "kubeflow.org/v1alpha1": f"{_NOT_SERVED}; write kubeflow.org/v1, and each entry of the list spec.replicaSpecs in "
    "the mapping spec.tfReplicaSpecs, by its tfReplicaType: MASTER as Chief, WORKER as Worker, PS as PS",
}
_KEPT = ("name", "generateName", "namespace", "labels", "annotations")
_OF_A_SERVER = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"),
    "deletionGracePeriodSeconds",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class Converted:
    """A dtjob, and what there is to say of it."""

    manifest: Fields
    findings: list[Finding]


def is_tfjob(manifest: Any) -> bool:
    """Whether this is a TFJob, of whichever version."""
    return isinstance(manifest, dict) and manifest.get("kind") == "TFJob"


def convert(manifest: Fields, *, program: bool = False) -> Converted:
    """The dtjob of this TFJob. `program`: dtjob's trainer runs the script, where that can be. Raises CannotConvert."""
    said = Findings()
    try:
        made = _converted(manifest, program, said)
    except CannotConvert as error:
        if not program:
            raise
        said = Findings()
        made = _converted(manifest, False, said)
        said.warn("--program", f"the image's own command stays: {error}")
    return Converted(made, said.found)


def _converted(manifest: Fields, wants_program: bool, said: Findings) -> Fields:
    version = manifest.get("apiVersion")
    if version != TFJOB_VERSION:
        old = _OLD_VERSIONS.get(str(version))
        raise CannotConvert(
            f"apiVersion: {version} {old}" if old else f"apiVersion: must be kubeflow.org/v1, not {version!r}"
        )
    whole = read(manifest, said)
    warn_of_empty_roles(manifest, said)
    if "status" in whole:
        said.note("status", "dtjob writes its own; it is left out")
    metadata = whole.get("metadata", {})
    made = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata_of(metadata, said),
        "spec": _spec(whole.get("spec", {}), str(metadata.get("name", "")), wants_program, said),
    }
    if found := problems(with_a_name(made)):
        raise CannotConvert("; ".join(map(str, found)))
    return made


def _spec(spec: Fields, name: str, wants_program: bool, said: Findings) -> Fields:
    replicas = replicas_of(spec, said)
    containers = [replica.template.training for replica in replicas.values()]
    program = _program(containers, said) if wants_program else None
    strategy, port, run_policy = strategy_of(replicas), port_of(containers[0]), spec.get("runPolicy", {})
    images = {one["image"] for one in containers}
    image = images.pop() if len(images) == 1 else None
    placed = scheduling(run_policy.get("schedulingPolicy", {}), replicas, said)
    if program is None and not is_distributed(replicas) and not any(map(sets_tf_config, containers)):
        said.note("spec", "TF_CONFIG is set in dtjob, also for a job of one task")
    for replica in replicas.values():
        pod = {**replica.template.pod, "containers[name=tensorflow]": replica.template.training}
        warn_of_hosts(pod, f"{replica.path}.template.spec", name, said)  # also in what becomes the program
        _clean_training(replica, port, is_distributed(replicas), program is not None, said)
        if image is not None:
            del replica.template.training["image"]
    blocks = {role.value: _role(role, replica) for role, replica in replicas.items()}
    if stands_alone(replicas) and Role.WORKER in replicas:
        blocks = {"chief": {key: one for key, one in blocks.pop("worker").items() if key != "replicas"}, **blocks}
        said.note(replicas[Role.WORKER].path, "the only task that trains is the chief in dtjob")
        replicas = {Role.CHIEF if role is Role.WORKER else role: one for role, one in replicas.items()}
    return {
        "strategy": strategy.value,
        **({} if image is None else {"image": image}),
        **({} if program is None else {"program": program}),
        "replicaSpecs": blocks,
        **_elastic(spec, replicas, said),
        **success_policy(spec.get("successPolicy"), replicas, said),
        **life_of(run_policy, replicas, said, supervised=program is not None),
        **({"scheduling": placed} if placed else {}),
        **_network(replicas, port, said),
    }


def _program(containers: list[Fields], said: Findings) -> Fields:
    """The block `program`. Raises CannotConvert if the containers run no common one."""
    program, why = common_program(containers)
    if program is None:
        raise CannotConvert(why)
    said.warn("--program", "the image must be built on dtjob's trainer image")
    return program


def _clean_training(replica: Replica, port: int, is_one_of_many: bool, has_program: bool, said: Findings) -> None:
    """Take out of the training container what dtjob sets."""
    training, path = replica.template.training, replica.template.path
    drop_our_ports(training, port, path, said)
    if has_program:
        drop_tf_config(training, path, "the trainer of dtjob makes it", said)
        training.pop("command", None)
        training.pop("args", None)
    elif is_one_of_many:
        why = "the operator of TFJob appends its own, which counts in a pod, so dtjob's is used"
        drop_tf_config(training, path, why, said)
    if training.get("env") == []:
        del training["env"]


def _role(role: Role, replica: Replica) -> Fields:
    """The block of one role in replicaSpecs."""
    template, training = replica.template, replica.template.training
    block: Fields = {"replicas": replica.count} if role in (Role.WORKER, Role.PS) else {}
    if training.get("resources") and not training["resources"].keys() - {"limits", "requests"}:
        block["resources"] = training.pop("resources")
    block["template"] = {
        **({"metadata": template.metadata} if template.metadata else {}),
        "spec": {**template.pod, "containers": [training, *template.pod["containers"]]},
    }
    return block


def _elastic(spec: Fields, replicas: Replicas, said: Findings) -> Fields:
    path = "spec.enableDynamicWorker"
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


def _network(replicas: Replicas, port: int, said: Findings) -> Fields:
    """The port of TensorFlow, and no NetworkPolicy where a container has ports for others."""
    network: Fields = {} if port == Network().port else {"port": port}
    for replica in replicas.values():
        if any(one.get("ports") for one in (replica.template.training, *replica.template.pod["containers"])):
            network["isolation"] = "None"
            path = f"{replica.path}.template.spec.containers"
            said.note(path, "has ports beside TensorFlow's, so network.isolation is None: anybody may reach the pods")
            break
    return {"network": network} if network else {}


def metadata_of(metadata: Fields, said: Findings) -> Fields:
    """The dtjob's metadata."""
    found = {name: metadata[name] for name in _KEPT if name in metadata}
    if found.get("annotations", {}).pop(_LAST_APPLIED, None) is not None:
        said.note(f"metadata.annotations.{_LAST_APPLIED}", "kubectl writes it; it is left out")
    for name in metadata:
        if name in _OF_A_SERVER:
            said.note(f"metadata.{name}", "the API server writes it; it is left out")
        elif name not in _KEPT:
            said.warn(f"metadata.{name}", "belongs to the TFJob's own object; it is left out")
    return {name: value for name, value in found.items() if value != {}}
