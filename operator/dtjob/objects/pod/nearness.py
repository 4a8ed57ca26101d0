# SPDX-License-Identifier: Apache-2.0
"""`scheduling.topology`: the pods that train near each other, as pod affinity; and the same in Kueue's words.

The evaluator is left out of it: no step waits for it. If it has to, it goes to the chief's node.
"""

from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.objects import labels, topology
from dtjob.objects.topology import Task

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE = "kubernetes.io/hostname"
WEIGHT = 100
"""Of 1 to 100: before every preference of a template."""


def brought_near(job: Job, task: Task, affinity: dict[str, Any]) -> dict[str, Any]:
    """The affinity of a task's pod (of its template; empty: none), with that to the job's other pods.

    The first pod finds none of them and goes anywhere: a scheduler lets a pod pass that its own affinity selects.
    """
    wanted = job.spec.scheduling.topology
    if wanted is None or task.role is Role.EVALUATOR:
        return affinity
    selector = {
        "matchLabels": {labels.JOB_UID: job.metadata.uid},
        "matchExpressions": [{"key": labels.ROLE, "operator": "NotIn", "values": [Role.EVALUATOR.value]}],
    }
    term = {"topologyKey": wanted.required or wanted.preferred, "labelSelector": selector}
    if wanted.required is not None:
        return _with_term(affinity, REQUIRED, term)
    return _with_term(affinity, PREFERRED, {"weight": WEIGHT, "podAffinityTerm": term})


def beside_chief(job: Job, affinity: dict[str, Any], chief_attempt: int) -> dict[str, Any]:
    """The affinity of an evaluator's pod, with that to the node of the chief's pod of this attempt. An earlier one may
    be Terminating for long, on a node that its successor does not get."""
    chief = topology.chief_task(job)
    wanted = {
        labels.JOB_UID: job.metadata.uid,
        labels.ROLE: chief.role.value,
        labels.INDEX: str(chief.index),
        labels.ATTEMPT: str(chief_attempt),
    }
    return _with_term(affinity, REQUIRED, {"topologyKey": NODE, "labelSelector": {"matchLabels": wanted}})


def _with_term(affinity: dict[str, Any], kind: str, term: dict[str, Any]) -> dict[str, Any]:
    pods: dict[str, Any] = affinity.get("podAffinity") or {}
    return {**affinity, "podAffinity": {**pods, kind: [term, *(pods.get(kind) or [])]}}


def topology_request(job: Job) -> dict[str, str]:
    """The same as the `topologyRequest` of a podSet of Kueue's Workload; empty if the job asks for none."""
    wanted = job.spec.scheduling.topology
    return wanted.model_dump(by_alias=True, exclude_none=True) if wanted else {}


def without_nearness(job: Job) -> Job:
    """The job without its topology: somebody else decides for all of its pods where they go."""
    scheduling = job.spec.scheduling.model_copy(update={"topology": None})
    return job.model_copy(update={"spec": job.spec.model_copy(update={"scheduling": scheduling})})
