# SPDX-License-Identifier: Apache-2.0
"""A placeholder: a pod that the scheduler places as it would place a worker, and in which nothing runs.

While it waits, it tells a cluster's autoscaler what is missing; where it has a node, there is room for a worker.
"""

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.objects import labels, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import Task

ROLE = "placeholder"
"""Of its label: neither the job's Service nor an HPA takes it for a worker."""
_SUFFIX = f"-{ROLE}"
_IDLE = ["sleep", "infinity"]
_OF_A_CONTAINER = ("name", "image", "imagePullPolicy", "resources", "securityContext", "restartPolicy")
"""Of each container, what places it and lets it in; it mounts nothing and knows nothing."""
_NOT_ITS_OWN = ("hostname", "subdomain", "readinessGates")


def placeholder_name(job: Job, index: int) -> str:
    """The name of the pod that keeps the place of this worker; no attempt at a task is called so."""
    return f"{topology.hostname(job, Task(Role.WORKER, index))}{_SUFFIX}"


def is_placeholder(name: str) -> bool:
    """Whether a pod of ours is one, by its name."""
    return name.endswith(_SUFFIX)


def placeholder(job: Job, index: int, defaults: Defaults = NO_DEFAULTS) -> Manifest:
    """The pod that keeps the place of this worker."""
    made = pod(job, Task(Role.WORKER, index), 0, defaults)
    made["metadata"]["name"] = placeholder_name(job, index)
    found = {name: text for name, text in labels.of(made).items() if name not in (labels.ATTEMPT, labels.SERVING)}
    made["metadata"]["labels"] = {**found, labels.ROLE: ROLE}
    spec = {name: value for name, value in made["spec"].items() if name not in _NOT_ITS_OWN}
    for name in ("initContainers", "containers"):
        if containers := spec.get(name):
            kept = ({field: one[field] for field in _OF_A_CONTAINER if field in one} for one in containers)
            spec[name] = [{**one, "command": _IDLE} for one in kept]
    made["spec"] = {**spec, "terminationGracePeriodSeconds": 1}
    return made
