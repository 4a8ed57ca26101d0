# SPDX-License-Identifier: Apache-2.0
"""`scheduling.topology`: the pods that train near each other, as pod affinity; and the same in Kueue's words.

The evaluator is left out of it: no step waits for it.
"""

from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.objects import labels
from dtjob.objects.topology import Task

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHT = 100
"""Of 1 to 100: before every preference of a template."""


def brought_near(job: Job, task: Task, affinity: dict[str, Any]) -> dict[str, Any]:
    """The affinity of a task's pod (of its template; empty: none), with that to the job's other pods.

    The first pod finds none of them and goes anywhere: a scheduler lets a pod pass that its own affinity selects.
    """
    topology = job.spec.scheduling.topology
    if topology is None or task.role is Role.EVALUATOR:
        return affinity
    pods: dict[str, Any] = affinity.get("podAffinity") or {}
    if topology.required is not None:
        more = {REQUIRED: [_term(job, topology.required), *(pods.get(REQUIRED) or [])]}
    else:
        assert topology.preferred is not None  # the definition takes one of the two
        weighted = {"weight": WEIGHT, "podAffinityTerm": _term(job, topology.preferred)}
        more = {PREFERRED: [weighted, *(pods.get(PREFERRED) or [])]}
    return {**affinity, "podAffinity": {**pods, **more}}


def topology_request(job: Job) -> dict[str, str]:
    """The same as the `topologyRequest` of a podSet of Kueue's Workload; empty if the job asks for none."""
    topology = job.spec.scheduling.topology
    if topology is None:
        return {}
    fields = {"required": topology.required, "preferred": topology.preferred}
    return {name: label for name, label in fields.items() if label is not None}


def without_nearness(job: Job) -> Job:
    """The job without its topology: somebody else decides for all of its pods where they go."""
    scheduling = job.spec.scheduling.model_copy(update={"topology": None})
    return job.model_copy(update={"spec": job.spec.model_copy(update={"scheduling": scheduling})})


def _term(job: Job, label: str) -> dict[str, Any]:
    near = {
        "matchLabels": {labels.JOB_UID: job.metadata.uid},
        "matchExpressions": [{"key": labels.ROLE, "operator": "NotIn", "values": [Role.EVALUATOR.value]}],
    }
    return {"topologyKey": label, "labelSelector": near}
