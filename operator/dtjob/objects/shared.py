# SPDX-License-Identifier: Apache-2.0
"""A job's objects: Service, ConfigMap, claim and NetworkPolicy here, pods in `pod.py`."""

from typing import Any

from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.api.names import CLAIM_SUFFIX
from dtjob.api.spec.network import Isolation
from dtjob.api.spec.volume_claim import Retention
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.readers import NO_READERS, Readers

CLAIM = "PersistentVolumeClaim"
MANAGER = "dtjob"
CLUSTER_KEY = "cluster.json"
"""Key of the cluster spec in the job's ConfigMap."""


def owned_metadata(job: Job, name: str, extra_labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Metadata of a child: name, labels and the owner reference by which Kubernetes collects it with the job."""
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": {
            labels.MANAGED_BY: MANAGER,
            labels.JOB_NAME: job.metadata.name,
            labels.JOB_UID: job.metadata.uid,
            **(extra_labels or {}),
        },
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": job.metadata.name,
                "uid": job.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def config_map_name(job: Job) -> str:
    """Named after the hash of the cluster spec: environment is frozen per container, so a new spec is a new object."""
    return f"{job.metadata.name}-cluster-{topology.cluster_hash(job)}"


def service(job: Job) -> Manifest:
    """The headless Service through which the tasks' host names resolve, also before their pods are ready."""
    ports = [{"name": "tensorflow", "port": job.spec.network.port}]
    if job.spec.program:
        ports.append({"name": "status", "port": job.spec.network.status_port})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned_metadata(job, job.metadata.name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {labels.SERVING: job.metadata.uid},
            "ports": ports,
        },
    }


def config_map(job: Job) -> Manifest:
    """The cluster spec, once for the whole job: O(N) bytes where a TF_CONFIG in each pod takes O(N²)."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(job, config_map_name(job)),
        "immutable": True,
        "data": {CLUSTER_KEY: topology.cluster_json(job)},
    }


def claim_name(job: Job) -> str:
    """The name of the claim of checkpoint.storage.volumeClaimTemplate."""
    return f"{job.metadata.name}{CLAIM_SUFFIX}"


def claim(job: Job) -> Manifest | None:
    """The claim of checkpoint.storage.volumeClaimTemplate; None without one. With retention Delete the job owns it."""
    storage = job.spec.checkpoint.storage if job.spec.checkpoint else None
    if storage is None or storage.volume_claim_template is None:
        return None
    template = storage.volume_claim_template.model_dump(mode="json", by_alias=True, exclude_unset=True)
    theirs, metadata = template.get("metadata") or {}, owned_metadata(job, claim_name(job))
    metadata["labels"] = {**(theirs.get("labels") or {}), **metadata["labels"]}
    if theirs.get("annotations"):
        metadata["annotations"] = theirs["annotations"]
    if storage.retention is Retention.RETAIN:
        del metadata["ownerReferences"]
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": template["spec"]}


def is_of(found: Manifest, name: str, uid: str | None) -> bool:
    """Whether an object belongs to the job with this name and uid. A claim that was retained belongs to the next job of
    its name."""
    controller = labels.controller_uid(found)
    if found["kind"] != CLAIM or controller is not None:
        return controller == uid
    return labels.of(found).get(labels.MANAGED_BY) == MANAGER and labels.of(found).get(labels.JOB_NAME) == name


def network_policy(job: Job, readers: Readers = NO_READERS) -> Manifest:
    """Pods of the job reach each other on every port (NCCL picks its own); `readers` reach the status port."""
    same_job = {labels.JOB_UID: job.metadata.uid}
    ingress: list[dict[str, Any]] = [{"from": [{"podSelector": {"matchLabels": dict(same_job)}}]}]
    # An empty `from` would admit everybody.
    if job.spec.program and (peers := readers.peers()):
        ingress.append({"from": peers, "ports": [{"port": job.spec.network.status_port, "protocol": "TCP"}]})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owned_metadata(job, job.metadata.name),
        "spec": {
            "podSelector": {"matchLabels": same_job},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def shared_objects(job: Job, readers: Readers = NO_READERS, *, with_config_map: bool = True) -> list[Manifest]:
    """All that must stand before the first pod, in order of creation. The ConfigMap may be left out, because its text
    takes long to make (5 ms for 4,000 tasks). `readers` may read the tasks' status."""
    objects = [service(job)] if not with_config_map else [service(job), config_map(job)]
    if (wanted := claim(job)) is not None:
        objects.append(wanted)
    if job.spec.network.isolation is Isolation.JOB:
        objects.append(network_policy(job, readers))
    return objects
