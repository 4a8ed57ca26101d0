# SPDX-License-Identifier: Apache-2.0
"""What is looked up in the cluster for a job in a queue. That is its Workload, if no watch shows it, the Workload's
priority class and flavours, and whether they have a topology.

Only a ResourceFlavor that names a Topology can place pods near each other. A Workload that asks any other for it is
never admitted. Where the cluster queue of the job has none such, the affinity of the pods brings them near.

A watch by label says DELETED of an object whose label somebody has removed. So the API server is asked for the Workload
by name, which nobody can change. This is done before a job is told to stop, or its end is told to nobody. What is found
counts. As long as it has no label, each look asks anew: nothing else tells of an eviction.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Action
from dtjob.plan.kueue import flavours_of
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Kueue, Workload


def priority(situation: Situation) -> tuple[kueue.Priority | None, str]:
    """The class that the job names, and what is said where there is none such. Raises Unread."""
    named = kueue.priority_class_of(situation.group_job, situation.defaults)
    if named is None:
        return None, ""
    (found,) = situation.children.found(named)
    if found is None:
        kind, name = named
        field = f"label {kueue.PRIORITY_CLASS}" if kind == "WorkloadPriorityClass" else "scheduling.priorityClassName"
        return None, f"{field}: there is no {kind} {name}; the job is queued as soon as there is"
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


def find_unlisted(situation: Situation) -> Situation:
    """The situation with the Workload that its place in the queue names, if that is not seen and was found. Raises
    Unread.

    A job that has ended names none any more that is gone or over: nobody asks for it again.
    """
    job, children, status = situation.group_job, situation.children, situation.status
    if status.queue is None or not _is_unlisted(situation, status.queue.workload):
        return situation
    (read,) = children.found((kueue.KIND, status.queue.workload))
    workload = Workload(read) if read and labels.controller_uid(read) == job.metadata.uid else None
    if workload and not (workload.is_going or (status.ended and workload.finished)):
        return replace(situation, children=replace(children, objects=(*children.objects, workload.manifest)))
    return situation.with_status(status.but(queue=status.queue.but(workload=""))) if status.ended else situation


def _is_unlisted(situation: Situation, name: str) -> bool:
    """Whether the Workload of this name may be there without being seen. One whose place another has taken is over."""
    if not name or situation.children.kueue is not Kueue.THERE:
        return False
    seen = map(Workload, situation.children.owned(situation.group_job, (kueue.KIND,)))
    return not any(one.name == name or (one.in_force and one.replaces == name) for one in seen)
