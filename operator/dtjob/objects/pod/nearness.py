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
_BUT_THE_EVALUATOR = [{"key": labels.ROLE, "operator": "NotIn", "values": [Role.EVALUATOR.value]}]


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


def placed_by_others(spec: dict[str, Any]) -> dict[str, Any]:
    """The pod's spec without what `brought_near` added: somebody else decides for all of them where they go."""
    pods = dict((spec.get("affinity") or {}).get("podAffinity") or {})
    for name, nested in ((REQUIRED, False), (PREFERRED, True)):
        if name in pods:
            pods[name] = [one for one in pods[name] if not _is_ours(one["podAffinityTerm"] if nested else one)]
    pods = {name: terms for name, terms in pods.items() if terms}
    affinity = {name: one for name, one in (spec.get("affinity") or {}).items() if name != "podAffinity"}
    affinity |= {"podAffinity": pods} if pods else {}
    left = {name: one for name, one in spec.items() if name != "affinity"}
    return {**left, "affinity": affinity} if affinity else left


def _is_ours(term: dict[str, Any]) -> bool:
    selector = term.get("labelSelector") or {}
    return selector.get("matchExpressions") == _BUT_THE_EVALUATOR and set(selector["matchLabels"]) == {labels.JOB_UID}


def _term(job: Job, label: str) -> dict[str, Any]:
    near = {
        "matchLabels": {labels.JOB_UID: job.metadata.uid},
        "matchExpressions": _BUT_THE_EVALUATOR,
    }
    return {"topologyKey": label, "labelSelector": near}
