# SPDX-License-Identifier: Apache-2.0
"""What is looked up in the cluster for a Workload: its priority class, its flavours, and whether they have a topology.

Only a ResourceFlavor that names a Topology can place pods near each other. A Workload that asks any other for it is
never admitted. Where the cluster queue of the job has none such, the affinity of the pods brings them near.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Action
from dtjob.plan.kueue.placement import flavours_of
from dtjob.plan.kueue.words import no_priority_class
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Workload


def priority(situation: Situation) -> tuple[kueue.Priority | None, str]:
    """The class that the job names, and what is said where there is none such. Raises Unread."""
    named = kueue.priority_class_of(situation.group_job, situation.defaults)
    if named is None:
        return None, ""
    (found,) = situation.children.found(named)
    if found is None:
        return None, no_priority_class(*named)
    return kueue.Priority(*named, int(found.get("value", 0))), ""


def priority_changes(situation: Situation, workload: Workload) -> tuple[Action, ...]:
    """What to write where the job names another WorkloadPriorityClass. That may change at any time, but for a Workload
    that holds quota and had no such class. A class that is not there changes nothing. Raises Unread."""
    named, now = kueue.priority_class_of(situation.group_job, situation.defaults), workload.priority_class
    kinds = (named[0] if named else "", now[0] if now else "")
    if workload.shape is None or named == now or kinds[0] != "WorkloadPriorityClass":
        return ()
    if workload.reserved and kinds[1] != kinds[0]:
        return ()
    chosen, _ = priority(situation)
    return () if chosen is None else (workload.change(chosen.spec(), f"the job's priority class is {chosen.name}"),)


def places_pods(situation: Situation, queue: str) -> bool:
    """Whether the job says `scheduling.topology` and a flavour of this queue names a Topology. Raises Unread."""
    if situation.group_job.spec.scheduling.topology is None:
        return False
    cluster_queue = _spec(situation, "LocalQueue", queue).get("clusterQueue")
    groups = _spec(situation, "ClusterQueue", cluster_queue).get("resourceGroups") if cluster_queue else ()
    names = (flavour["name"] for group in groups or () for flavour in group.get("flavors") or ())
    return any(_spec(situation, "ResourceFlavor", name).get("topologyName") for name in dict.fromkeys(names))


def _spec(situation: Situation, kind: str, name: str) -> Mapping[str, Any]:
    (found,) = situation.children.found((kind, name))
    return (found or {}).get("spec") or {}


def read_flavours(situation: Situation, workload: Workload) -> tuple[dict[str, Manifest], list[str]]:
    """The flavours of what this Workload was admitted to, and the names of those that are not there. Raises Unread."""
    names = flavours_of(workload)
    found = dict(zip(names, situation.children.found(*(("ResourceFlavor", name) for name in names)), strict=True))
    return {name: one for name, one in found.items() if one is not None}, [name for name in names if not found[name]]
