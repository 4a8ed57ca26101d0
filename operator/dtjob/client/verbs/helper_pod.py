# SPDX-License-Identifier: Apache-2.0
"""A pod beside a job that reads its checkpoints: the pod of its chief with another command, and nothing to train."""

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dtjob.api.job import Job
from dtjob.api.names import API_VERSION, KIND, TRAINING_CONTAINER
from dtjob.api.spec.pod_template import CHECKPOINT_VOLUME, CLUSTER_VOLUME, SHARED_MEMORY_VOLUME, SOURCE_VOLUME
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, NotDone, Refused
from dtjob.client.signals import signals_as_exceptions
from dtjob.client.verbs.pods import container_state, in_order, selector, state_of
from dtjob.crd.answers.problems import to_job
from dtjob.objects import labels, topology
from dtjob.objects.pod.pod import pod

Object = dict[str, Any]
CONTAINER = "helper"
START_SECONDS = 300.0
LONGEST_SECONDS = 24 * 3600
"""After which the pod ends, also if the command was killed."""
_KEPT = (
    *("securityContext", "imagePullSecrets", "nodeSelector", "tolerations", "serviceAccountName"),
    *("automountServiceAccountToken", "enableServiceLinks", "runtimeClassName"),
)
_OF_THE_OPERATOR = ("securityContext", "imagePullSecrets", "nodeSelector", "tolerations")
"""Fields for which the operator has defaults (`jobs` in the values of the chart). Only a pod of the chief shows these,
and the defaults of variables."""
_OF_THE_CONTAINER = ("imagePullPolicy", "securityContext", "envFrom")
_OURS = (CLUSTER_VOLUME, SOURCE_VOLUME, SHARED_MEMORY_VOLUME)
_RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}


def helper_pod(
    stored: Object, command: list[str], image: str | None = None, pods: Sequence[Mapping[str, Any]] = ()
) -> Object:
    """The pod for a job as it is stored. `pods`: those of the job. Raises Refused if there is nothing to read."""
    job = typed(stored)
    _check_keeps(job)
    name, task = job.metadata.name, topology.chief_task(job)
    chief = pod(job, task, 0)["spec"]
    training = _training(chief)
    for one in in_order(pods, task.id)[-1:]:
        chief |= {field: one["spec"][field] for field in _OF_THE_OPERATOR if field in one["spec"]}
        training["env"] = _training(one["spec"]).get("env")
    image = image or training.get("image") or stored.get("status", {}).get("image")
    if not image:
        raise Refused(f"{name}: its image is the operator's default, which is not known; give --image")
    container = {
        **{field: training[field] for field in _OF_THE_CONTAINER if field in training},
        "name": CONTAINER,
        "image": image,
        "command": command,
        "resources": _RESOURCES,
        "env": [one for one in training.get("env") or () if not one["name"].startswith(("DTJOB_", "TF_CONFIG"))],
        "volumeMounts": _without_ours(training.get("volumeMounts")),
    }
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": name, "uid": job.metadata.uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-helper-{secrets.token_hex(3)}",
            "labels": {"app.kubernetes.io/name": "dtjob-helper", "app.kubernetes.io/instance": name},
            "ownerReferences": [owner],
        },
        "spec": {
            **{field: chief[field] for field in _KEPT if field in chief},
            **_beside(pods),
            "volumes": _without_ours(chief.get("volumes")),
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "activeDeadlineSeconds": LONGEST_SECONDS,
            "containers": [container],
        },
    }


def typed(stored: Object) -> Job:
    """The job as a typed object."""
    return to_job({name: stored[name] for name in ("apiVersion", "kind", "metadata", "spec") if name in stored})


def directory_of(job: Job) -> str:
    """The directory or URI of the checkpoints. Raises Refused if the job has none."""
    _check_keeps(job)
    assert job.spec.checkpoint is not None
    return job.spec.checkpoint.directory


@contextlib.contextmanager
def running(cluster: Cluster, stored: Object, command: list[str], image: str | None = None) -> Iterator[str]:
    """The name of a helper pod that runs. It is deleted afterwards. Raises NotDone if it does not start."""
    pods = cluster.list("Pod", selector(stored["metadata"]["name"]))
    with signals_as_exceptions():
        made = helper_pod(stored, command, image, pods)
        try:
            made = cluster.create(made)
            name = str(made["metadata"]["name"])
            _wait_until_it_runs(cluster, name)
            yield name
        finally:
            with contextlib.suppress(ClientError):
                if "uid" not in made["metadata"]:  # its creation was interrupted, and nobody else has such a name
                    made = cluster.get("Pod", made["metadata"]["name"])
                cluster.delete("Pod", made["metadata"]["name"], made["metadata"]["uid"], seconds=0)


def ended(cluster: Cluster, name: str) -> str:
    """How the helper pod has ended, and the last line of its log. Empty while it runs, or if nobody knows."""
    try:
        found = cluster.find("Pod", name)
    except ClientError:
        return ""
    said, line = "its pod was deleted" if found is None else _state(found), b""
    if said == "running":
        return ""
    with contextlib.suppress(ClientError):  # its node may be gone
        line = b"" if found is None else cluster.log(name, container=CONTAINER, tailLines=1)
    return ": ".join(filter(None, (said, line.decode(errors="replace").strip())))


def _wait_until_it_runs(cluster: Cluster, name: str) -> None:
    said = "pending"
    for found in changes(cluster, "Pod", name, time.monotonic() + START_SECONDS):
        if found is None:
            break
        said = _state(found)
        if said == "running":
            return
        if said.startswith(("failed", "finished")):
            said = ended(cluster, name) or said
            break
        if said.startswith(("ErrImage", "ImagePull", "Invalid", "Create")):
            break
    raise NotDone(f"the pod {name}, which reads the checkpoints, does not start: {said}")


def _state(found: Mapping[str, Any]) -> str:
    """The state of the helper's container, or why the pod has no node."""
    state = state_of(found, CONTAINER)
    if state != "pending":
        return state
    for one in (found.get("status") or {}).get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return str(one.get("message") or "no node has room")
    return state


def _check_keeps(job: Job) -> None:
    storage = job.spec.checkpoint.storage if job.spec.checkpoint else None
    if storage is None:
        raise Refused(f"{job.metadata.name}: has no checkpoint, so it has no files to read")
    if storage.volume is not None and "emptyDir" in storage.volume:
        raise Refused(f"{job.metadata.name}: its checkpoints are in an emptyDir, which ends with the pod of the chief")


def _training(spec: Mapping[str, Any]) -> Object:
    """The training container of a pod."""
    return next(one for one in spec["containers"] if one["name"] == TRAINING_CONTAINER)


def _without_ours(volumes: Sequence[Object] | None) -> list[Object]:
    """The volumes, or mounts of volumes, that the user has asked for."""
    return [one for one in volumes or () if one["name"] not in _OURS]


def _beside(pods: Sequence[Mapping[str, Any]]) -> Object:
    """The affinity to the node of a pod that runs and mounts the checkpoints: a claim may be for one node only."""
    for one in in_order(pods):
        mounts = any(volume["name"] == CHECKPOINT_VOLUME for volume in one["spec"].get("volumes") or ())
        node = one["spec"].get("nodeName")
        if node and mounts and container_state(one)[0] == "running" and labels.SERVING in labels.of(one):
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    return {}
