# SPDX-License-Identifier: Apache-2.0
"""Where pods go: affinity to each other (`scheduling.topology`), and tolerations of lost nodes.

The evaluator and the data workers are left out of the topology: no step waits for the evaluator, or for a certain data
worker. An evaluator that needs the chief's volume goes to the chief's node.
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
    if wanted is None or not task.role.trains:
        return affinity
    apart = [Role.DATA.value] if job.spec.replica_specs.data else []
    selector = {
        "matchLabels": {labels.JOB_UID: job.metadata.uid},
        "matchExpressions": [{"key": labels.ROLE, "operator": "NotIn", "values": [*apart, Role.EVALUATOR.value]}],
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
    """The `topologyRequest` of a podSet of Kueue's Workload. Empty if the job asks for no topology."""
    wanted = job.spec.scheduling.topology
    return wanted.model_dump(by_alias=True, exclude_none=True) if wanted else {}


def without_nearness(job: Job) -> Job:
    """The job without its topology: somebody else decides for all of its pods where they go."""
    scheduling = job.spec.scheduling.model_copy(update={"topology": None})
    return job.model_copy(update={"spec": job.spec.model_copy(update={"scheduling": scheduling})})


NODE_LOST_SECONDS = 30
"""How long a training pod stays bound to a lost node after the node got its taint. By then the node has been silent
for most of a minute. Kubernetes gives every pod 300 s (DefaultTolerationSeconds), and the whole group would wait."""
NODE_LOST_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_node_loss(tolerations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The user's tolerations, and ours for the taints of a lost node that none of them speaks of."""
    ours = [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": NODE_LOST_SECONDS}
        for taint in NODE_LOST_TAINTS
        if not any(_covers(toleration, taint) for toleration in tolerations)
    ]
    return [*tolerations, *ours]


def with_those_of(tolerations: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A pod's tolerations, and those of another whose node it has to go to: nothing but its own for a lost node."""
    more = [one for one in other if one not in tolerations and one.get("key") not in NODE_LOST_TAINTS]
    return [*tolerations, *more]


def _covers(toleration: dict[str, Any], taint: str) -> bool:
    """As DefaultTolerationSeconds decides: no key means every taint, and no effect every effect."""
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
