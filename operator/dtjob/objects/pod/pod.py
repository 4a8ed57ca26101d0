# SPDX-License-Identifier: Apache-2.0
"""A task's pod: what dtjob sets, over the user's template, over dtjob's defaults.

Three kinds of fields meet here. The CRD refuses ours in a template. A template replaces defaults (grace period, token
mount, tolerations of a lost node). Others are merged (security contexts, env, volumes, ports, labels).
"""

from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import MountOn
from dtjob.api.spec.pod_template import CHECKPOINT_VOLUME, CLUSTER_VOLUME, SOURCE_VOLUME, TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import AnyReplicaSpec, Role, SingleReplicaSpec
from dtjob.objects import labels, shared, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, image_of
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod import accelerators
from dtjob.objects.pod.environment import (
    CLUSTER_DIRECTORY,
    HASH_SEED,
    SOURCE_DIRECTORY,
    TF_CONFIG,
    environment,
    pod_seconds,
)
from dtjob.objects.pod.placement import beside_chief, brought_near, with_node_loss, with_those_of
from dtjob.objects.pod.security import pod_security, with_security
from dtjob.objects.topology import Task


def pod(
    job: Job, task: Task, attempt: int, defaults: Defaults = NO_DEFAULTS, chief_attempt: int | None = 0
) -> Manifest:
    """The pod of one attempt at a task; its container has no image where neither job nor `defaults` name one.

    `chief_attempt` is the chief's current one: an evaluator that must run on the chief's node goes to that pod's. None:
    the chief has ended, and the evaluator may go anywhere.
    """
    replica = job.spec.replica_specs.get(task.role) or SingleReplicaSpec()
    template = replica.template.model_dump(by_alias=True, exclude_unset=True) if replica.template else {}
    template = defaults.pods.below(template)
    metadata = shared.owned_metadata(job, topology.pod_name(job, task, attempt), labels_of(job, task, attempt))
    user_metadata = template.get("metadata") or {}
    metadata["labels"] = {**defaults.pod_labels, **(user_metadata.get("labels") or {}), **metadata["labels"]}
    if user_metadata.get("annotations"):
        metadata["annotations"] = user_metadata["annotations"]
    spec = _spec(job, task, attempt, replica, template, defaults)
    variables = spec["containers"][0]["env"]
    variables += defaults.pods.variables(variables)
    if affinity := brought_near(job, task, spec.get("affinity") or {}):
        spec["affinity"] = affinity
    if task.role is Role.EVALUATOR and chief_attempt is not None and topology.evaluator_follows_chief(job):
        spec["affinity"] = beside_chief(job, spec.get("affinity") or {}, chief_attempt)
        chief = pod(job, topology.chief_task(job), chief_attempt, defaults)
        spec["tolerations"] = with_those_of(spec["tolerations"], chief["spec"]["tolerations"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def labels_of(job: Job, task: Task, attempt: int) -> dict[str, str]:
    """The labels by which the pod of an attempt is found; `labels.SERVING` only while it is the current one."""
    return {
        labels.JOB_NAME: job.metadata.name,
        labels.JOB_UID: job.metadata.uid,
        labels.ROLE: task.role.value,
        labels.INDEX: str(task.index),
        labels.ATTEMPT: str(attempt),
        labels.SERVING: job.metadata.uid,
    }


def _spec(
    job: Job, task: Task, attempt: int, replica: AnyReplicaSpec, template: dict[str, Any], defaults: Defaults
) -> dict[str, Any]:
    image = image_of(job, defaults)
    user: dict[str, Any] = template.get("spec") or {}
    containers = user.pop("containers", None) or []
    training: dict[str, Any] = {"image": image} if image else {}
    training |= next((c for c in containers if c["name"] == TRAINING_CONTAINER), {})
    sidecars = [c for c in containers if c["name"] != TRAINING_CONTAINER]
    ours = defaults.pods.with_resources(_training_container(job, task, attempt, replica, training))
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # What Kubernetes takes by itself asks the node's resolver there, which knows no Service.
        **({"dnsPolicy": "ClusterFirstWithHostNet"} if user.get("hostNetwork") else {}),
        **user,
        "securityContext": pod_security(user.get("securityContext"), defaults.pods.security_context),
        "terminationGracePeriodSeconds": pod_seconds(job, task),
        "tolerations": with_node_loss(user.get("tolerations") or []),
        "hostname": topology.hostname(job, task),
        "subdomain": job.metadata.name,
        "restartPolicy": "Never",
        "containers": [with_security(one) for one in (ours, *sidecars)],
    }
    if user.get("initContainers"):
        spec["initContainers"] = [with_security(one) for one in user["initContainers"]]
    if job.spec.scheduling.priority_class_name:
        spec["priorityClassName"] = job.spec.scheduling.priority_class_name
    volumes = [{"name": name, **source} for name, source, _ in _mounted(job, task)]
    if volumes or user.get("volumes"):
        spec["volumes"] = [*volumes, *(user.get("volumes") or [])]
    return accelerators.equip(job, task, spec)


def _training_container(
    job: Job, task: Task, attempt: int, replica: AnyReplicaSpec, user: dict[str, Any]
) -> dict[str, Any]:
    network = job.spec.network
    ports = [{"name": "tensorflow", "containerPort": network.port}]
    if job.spec.program:
        ports.append({"name": "status", "containerPort": network.status_port})
    container: dict[str, Any] = {
        # The last log lines tell why a task failed, without a permission to read logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **user,
        "name": TRAINING_CONTAINER,
        "env": _variables(job, task, attempt, user),
        "ports": [*ports, *(user.get("ports") or [])],
    }
    if job.spec.program:
        container["command"] = ["python3", "-m", "dtjob_trainer"]
        # The kubelet expands $(NAME) in args. An entrypoint is a name, in which a dollar is a dollar.
        container["args"] = [job.spec.program.entrypoint.replace("$", "$$"), *job.spec.program.args]
        if found := job.spec.program.env_from:
            named = [one.model_dump(by_alias=True, exclude_unset=True) for one in found]
            container["envFrom"] = [*named, *(user.get("envFrom") or [])]
    if replica.resources:
        container["resources"] = replica.resources.model_dump(by_alias=True, exclude_unset=True)
    mounts = [{"name": name, **mount} for name, _, mount in _mounted(job, task)]
    if mounts or user.get("volumeMounts"):
        container["volumeMounts"] = [*mounts, *(user.get("volumeMounts") or [])]
    return container


def _variables(job: Job, task: Task, attempt: int, user: dict[str, Any]) -> list[dict[str, Any]]:
    """Ours, then the user's. TF_CONFIG (for an image's own command) and PYTHONHASHSEED are the user's own if the
    template sets them."""
    theirs = user.get("env") or []
    ours = environment(job, task, attempt, user.get("terminationMessagePath"))
    replaced = {variable["name"] for variable in theirs} & {TF_CONFIG, HASH_SEED}
    return [*(variable for variable in ours if variable["name"] not in replaced), *theirs]


def _mounted(job: Job, task: Task) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """dtjob's volumes in the pod: each with its name, its source and how it is mounted."""
    found: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    program, storage = job.spec.program, job.spec.checkpoint.storage if job.spec.checkpoint else None
    if task.role is Role.DATA:  # it runs no program
        return []
    if program:
        source = {"configMap": {"name": shared.config_map_name(job)}}
        found.append((CLUSTER_VOLUME, source, {"mountPath": CLUSTER_DIRECTORY, "readOnly": True}))
    if program and program.source:
        theirs = program.source.config_map
        source = program.source.volume or {"configMap": {"name": theirs.name if theirs else ""}}
        found.append((SOURCE_VOLUME, source, {"mountPath": SOURCE_DIRECTORY, "readOnly": True}))
    saves = task == topology.chief_task(job) or task.role is Role.EVALUATOR
    if storage and storage.uri is None and (saves or storage.mount_on is MountOn.ALL):
        below = {"subPath": storage.sub_path} if storage.sub_path else {}
        claim = {"persistentVolumeClaim": {"claimName": shared.claim_name(job)}}
        volume = claim if storage.volume is None else storage.volume
        found.append((CHECKPOINT_VOLUME, volume, {"mountPath": storage.mount_path, **below}))
    return found
