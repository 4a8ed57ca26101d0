# SPDX-License-Identifier: Apache-2.0
"""A job in a queue of Kueue: the labels that say so, and the Workload that dtjob keeps for it.

Kueue (https://kueue.sigs.k8s.io) decides from a Workload alone: what pods there will be, and whether there is quota for
them. It has code for the kinds of jobs that it knows; for others their own controller keeps the Workload, which is this
operator. Names of fields, labels and reasons are those of kueue.x-k8s.io/v1beta2 (v0.19).
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dtjob.api.job import GROUP as JOB_GROUP
from dtjob.api.job import KIND as JOB_KIND
from dtjob.api.job import Job
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.api.words import counted
from dtjob.objects import labels, quantities, shared, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.defaults import priority_class_of as default_priority
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.placement import topology_request
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import Task

GROUP = "kueue.x-k8s.io"
API_VERSION = f"{GROUP}/v1beta2"
KIND, PLURAL = "Workload", "workloads"
NAMESPACED = (KIND, "LocalQueue")
"""Of its kinds that dtjob reads, those that are in namespaces."""

QUEUE = f"{GROUP}/queue-name"
"""On a job: the LocalQueue that it waits in."""
PRIORITY_CLASS = f"{GROUP}/priority-class"
"""On a job: its WorkloadPriorityClass, which says who goes first, and says nothing of its pods."""
PREBUILT = f"{GROUP}/prebuilt-workload-name"
"""On a job, an annotation (MultiKueue's since v0.18) or a label: the Workload that somebody else has made for it.
MultiKueue makes it in the cluster that it sends the job to."""
MAX_EXEC_TIME = f"{GROUP}/max-exec-time-seconds"
JOB_UID = f"{GROUP}/job-uid"
"""On a Workload: whose it is."""
POD_SET, LOCAL_QUEUE, CLUSTER_QUEUE = f"{GROUP}/podset", f"{GROUP}/local-queue-name", f"{GROUP}/cluster-queue-name"
"""On pods: what Kueue counts and places them by."""
WORKLOAD = f"{GROUP}/workload"
"""On pods, an annotation: their Workload, by which Kueue finds those that it gives a place in a topology."""
TOPOLOGY_GATE = f"{GROUP}/topology"
"""The scheduling gate that Kueue takes away when it has given the pod that place."""
SHAPE = f"{JOB_GROUP}/shape"
"""On a Workload of ours, an annotation: what it was made for, as the job may change while it is suspended."""
TOPOLOGY = f"{GROUP}/podset-"
"""On pods, the prefix of the annotations `required-topology`, `preferred-topology` and `unconstrained-topology`. Kueue
gives a place to the pods that have one of them."""
REPLACES = f"{GROUP}/workload-slice-replacement-for"
"""On a Workload, an annotation: the one (namespace/name) whose place and quota it takes over when it is admitted."""
ELASTIC = f"{GROUP}/elastic-job"
"""On a Workload that replaces another, an annotation, `true`."""
PROVISIONING = "provreq.kueue.x-k8s.io/"
"""Annotations of a job with this prefix are for ProvisioningRequests, and belong on its Workload too."""

LONGEST_NAME = 63
"""So that a Workload's name can be a label's value too."""


def priority(kind: str, name: str, value: int) -> dict[str, Any]:
    """The fields of a Workload's spec for a class of this kind. Its value decides which Workload goes first."""
    group = GROUP if kind == "WorkloadPriorityClass" else "scheduling.k8s.io"
    return {"priorityClassRef": {"group": group, "kind": kind, "name": name}, "priority": value}


def queue_of(job: Job) -> str | None:
    """The LocalQueue that the job is to wait in, None if it is in none."""
    return _label(job, QUEUE)


def prebuilt_of(job: Job) -> str | None:
    """The name of the Workload that somebody else makes for the job, None if dtjob does."""
    return _metadata(job, "annotations").get(PREBUILT) or _label(job, PREBUILT)


def priority_class_of(job: Job, defaults: Defaults = NO_DEFAULTS) -> tuple[str, str] | None:
    """Kind and name of the class that the job's place in the queue depends on, None if it names none."""
    if name := _label(job, PRIORITY_CLASS):
        return "WorkloadPriorityClass", name
    return ("PriorityClass", name) if (name := default_priority(job, defaults)) else None


def workload_name(job: Job, generation: int | None = None) -> str:
    """The name of the job's Workload, formed as Kueue does it for the kinds that it knows. With a generation: of the
    one that takes that one's place."""
    of_slice = () if generation is None else (str(generation),)
    text = "\n".join((JOB_KIND, JOB_GROUP, job.metadata.name, job.metadata.uid, *of_slice))
    hashed = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:5]
    return f"{f'{JOB_KIND.lower()}-{job.metadata.name}'[: LONGEST_NAME - 6]}-{hashed}"


def shape_of(job: Job) -> str:
    """What the job asks for: a Workload of another shape is for the job as it was before. The form is
    `ROLES-WORKERS-LEAST`: a hash, the number of workers, and their least number (empty: all are needed). No quota is
    asked for what there may be later."""
    workers, least = job.spec.replica_specs.worker, topology.min_count(job, Role.WORKER)
    return f"{_roles_of(job)}-{workers.replicas}-{least or ''}" if workers else _roles_of(job)


def same_but_workers(shape: str, job: Job) -> bool:
    """Whether a Workload of this shape is for this job but for the number of its workers."""
    return shape.partition("-")[0] == _roles_of(job)


def _roles_of(job: Job) -> str:
    """A hash, ten hex digits, of all roles, without the numbers of workers and of data workers, which may change while
    the job runs."""
    dumped = job.spec.replica_specs.model_dump(mode="json", by_alias=True, exclude_unset=True)
    roles: dict[str, Any] = {name: one and {**one, "replicas": one.get("replicas", 1)} for name, one in dumped.items()}
    for sized in (Role.WORKER, Role.DATA):
        (roles.get(sized) or {}).pop("replicas", None)
    return hashlib.sha256(json.dumps(roles, sort_keys=True).encode()).hexdigest()[:10]


def workload(job: Job, defaults: Defaults, priority: Mapping[str, Any] | None, near: bool = False) -> Manifest:
    """The job's Workload. `near`: its queue can place pods near each other (`scheduling.topology`). Raises ValueError
    where the job is in no queue."""
    queue = queue_of(job)
    if queue is None:
        raise ValueError(f"{job.metadata.name} has no label {QUEUE}")
    metadata = shared.owned_metadata(job, workload_name(job), {JOB_UID: job.metadata.uid})
    passed_on = {name: text for name, text in _metadata(job, "annotations").items() if name.startswith(PROVISIONING)}
    metadata["annotations"] = {**passed_on, SHAPE: shape_of(job)}
    spec: dict[str, Any] = {"queueName": queue, "active": True, "podSets": _near(job, pod_sets(job, defaults), near)}
    spec |= priority or {}
    if (seconds := _label(job, MAX_EXEC_TIME)) and seconds.isdecimal() and int(seconds) > 0:
        spec["maximumExecutionTimeSeconds"] = int(seconds)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def replacement(job: Job, defaults: Defaults, priority: Mapping[str, Any] | None, replaces: str) -> Manifest:
    """The Workload that asks for what the job needs now, all of it or nothing. Meanwhile its pods run with the quota of
    the Workload `replaces`. Kueue counts what it asks for beyond that, and in one step admits it and finishes that
    one."""
    made = workload(job, defaults, priority)
    metadata = made["metadata"]
    metadata["name"] = workload_name(job, job.metadata.generation)
    metadata["annotations"] |= {REPLACES: f"{job.metadata.namespace}/{replaces}", ELASTIC: "true"}
    for one in made["spec"]["podSets"]:
        one.pop("minCount", None)  # Kueue takes no Workload that is both
    return made


def pod_sets(job: Job, defaults: Defaults) -> list[dict[str, Any]]:
    """One set of alike pods for each role, with the template that its pods have, and how many there are.

    `minCount`, with which fewer may be admitted, is one set's at most, as Kueue has it.
    """
    found: list[dict[str, Any]] = []
    for role in Role:
        if (replica := job.spec.replica_specs.get(role)) is None:
            continue
        one = {"name": role.value, "count": replica.replicas, "template": _template(job, role, defaults)}
        least = topology.min_count(job, role)
        if least is not None and not any("minCount" in other for other in found):
            one["minCount"] = least
        found.append(one)
    return found


def _near(job: Job, sets: list[dict[str, Any]], near: bool) -> list[dict[str, Any]]:
    """The sets, those that train with the topology that the job asks for.

    Kueue places each set by itself, but for two of which one is a single pod: those it places as one.
    """
    request: dict[str, Any] = dict(topology_request(job)) if near else {}
    training = [one for one in sets if Role(one["name"]).trains]
    if request and len(training) == 2 and any(one["count"] == 1 for one in training):
        request["podSetGroupName"] = "training"
    return [{**one, "topologyRequest": request} if request and one in training else one for one in sets]


def needs(job: Job, defaults: Defaults) -> str:
    """What all of the job's pods ask for, in words: `3 cpu, 6Gi memory`; how many they are where they ask for
    nothing."""
    sets = pod_sets(job, defaults)
    try:
        each = [quantities.times(quantities.requests_of(one["template"]["spec"]), one["count"]) for one in sets]
    except ValueError:  # the API server refuses the pods, and says which field it is
        each = []
    number = sum(one["count"] for one in sets)
    return quantities.said(quantities.added(each)) or counted(number, "pod")


def _template(job: Job, role: Role, defaults: Defaults) -> dict[str, Any]:
    """The pod of this role's first task without what is that task's alone."""
    made = pod(job, Task(role, 0), 0, defaults, chief_attempt=None)
    found = made["metadata"]
    ours = (labels.INDEX, labels.ATTEMPT, labels.SERVING)
    metadata = {"labels": {name: value for name, value in found["labels"].items() if name not in ours}}
    if annotations := found.get("annotations"):
        metadata["annotations"] = annotations
    spec = {name: value for name, value in made["spec"].items() if name != "hostname"}
    spec["containers"] = [
        {name: value for name, value in one.items() if name != "env" or one["name"] != TRAINING_CONTAINER}
        for one in spec["containers"]
    ]
    return {"metadata": metadata, "spec": spec}


def _label(job: Job, name: str) -> str | None:
    return _metadata(job, "labels").get(name) or None


def _metadata(job: Job, name: str) -> dict[str, str]:
    return (job.metadata.model_extra or {}).get(name) or {}
