# SPDX-License-Identifier: Apache-2.0
"""The Workloads of one job, and where Kueue lets the pods of an admitted job run, by role.

The flavours' labels and tolerations say where pods run (the kind of nodes that the quota is for). Admission checks may
add more, such as new nodes for this job. The result is written into the job's status when the job is admitted. Every
pod until its next admission has it.

A watch by label says DELETED of an object whose label somebody has removed. So the API server is asked for the Workload
by name, which nobody can change. This is done before a job is told to stop, or its end is told to nobody. The same is
done if a job runs and its Workload is seen without its admission: an operator that begins may have an old list. What is
found counts. As long as it has no label, each look asks anew: nothing else tells of an eviction.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.placement import QueueEntry
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.placement import without_nearness
from dtjob.plan.actions import Action
from dtjob.plan.seen.children import deleting
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import QUOTA_RESERVED, Kueue, Workload

PodSet = dict[str, Any]
"""What pods of one role get: nodeSelector, tolerations, labels, annotations, schedulingGates; and the `count` that was
admitted, where that may be another than the spec's."""
COUNT = "count"
_LABEL_VALUE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""What Kueue would label pods with: a DNS label. Its own names need not be one."""


class Conflict(Exception):
    """Kueue gives a value to something that the job, or another of its decisions, has set otherwise."""


def flavours_of(workload: Workload) -> tuple[str, ...]:
    """The names of the flavours that its pods' places depend on."""
    return tuple(sorted({name for one in workload.assigned for name in (one.get("flavors") or {}).values()}))


def pod_sets(job: Job, workload: Workload, flavours: Mapping[str, Manifest]) -> dict[str, PodSet]:
    """What the pods of each role get. `flavours` are the ResourceFlavors by name. Raises Conflict."""
    return {one["name"]: _pod_set(job, workload, one, flavours) for one in workload.assigned}


def pod_set_of(situation: Situation, role: Role) -> tuple[Job, PodSet]:
    """The job of which the pods of a role are made, and what they get from the queue that the job came out of. If Kueue
    places pods near each other, the job has no topology of its own."""
    job, queue = situation.group_job, situation.status.queue
    pod_set = queue.pod_sets.get(role.value, {}) if queue else {}
    annotations = pod_set.get("annotations") or {}
    if any(f"{kueue.TOPOLOGY}{how}-topology" in annotations for how in ("required", "preferred")):
        job = without_nearness(job)
    return job, pod_set


def placed(pod: Manifest, pod_set: Mapping[str, Any]) -> Manifest:
    """The pod with what its role gets. Labels of dtjob's own stay as they are."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata = {**metadata, "labels": {**(pod_set.get("labels") or {}), **metadata["labels"]}}
    if annotations := pod_set.get("annotations"):
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    spec = dict(spec)
    if selector := pod_set.get("nodeSelector"):
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **selector}
    for name in ("tolerations", "schedulingGates"):
        there = spec.get(name) or []
        if more := [one for one in pod_set.get(name) or () if one not in there]:
            spec[name] = [*there, *more]
    return {**pod, "metadata": metadata, "spec": spec}


def _pod_set(job: Job, workload: Workload, assigned: Mapping[str, Any], flavours: Mapping[str, Manifest]) -> PodSet:
    name = assigned["name"]
    labels = {kueue.POD_SET: name, kueue.LOCAL_QUEUE: workload.queue}
    if _LABEL_VALUE.fullmatch(workload.cluster_queue):
        labels[kueue.CLUSTER_QUEUE] = workload.cluster_queue
    made: PodSet = {"labels": labels, "annotations": {kueue.WORKLOAD: workload.name}}
    if (count := _count(job, workload, name)) is not None:
        made[COUNT] = count
    if assigned.get("topologyAssignment"):
        made["schedulingGates"] = [{"name": kueue.TOPOLOGY_GATE}]
        # Without this annotation Kueue, which is to give the pods a place, never looks at them again.
        request = workload.topology_request(name)
        how = next((one for one in ("required", "preferred") if request.get(one)), "unconstrained")
        made["annotations"] |= {f"{kueue.TOPOLOGY}{how}-topology": request.get(how, "true")}
    selector, tolerations = _of_flavours(assigned, flavours)
    for check in workload.checks:
        for update in check.get("podSetUpdates") or ():
            if update["name"] != name:
                continue
            by = f"admission check {check['name']}"
            selector = _joined(selector, update.get("nodeSelector"), by)
            labels = _joined(labels, update.get("labels"), by)
            made["annotations"] = _joined(made["annotations"], update.get("annotations"), by)
            tolerations += [one for one in update.get("tolerations") or () if one not in tolerations]
    replica = job.spec.replica_specs.get(Role(name)) if name in list(Role) else None
    own = (replica.pod_spec.node_selector if replica else None) or {}
    _joined(own, selector, f"Kueue gives replicaSpecs.{name}")
    made |= {"labels": labels, "nodeSelector": selector, "tolerations": tolerations}
    return {key: value for key, value in made.items() if value}


def _count(job: Job, workload: Workload, name: str) -> int | None:
    """How many tasks of a role were admitted, of one whose number may change; None of any other, which has to be
    admitted whole."""
    replica = job.spec.replica_specs.get(Role(name)) if name in list(Role) else None
    if replica is None:
        return None
    admitted = workload.counts().get(name, replica.replicas)
    if name == Role.DATA or (name == Role.WORKER and job.spec.elastic_policy is not None):
        return admitted
    if admitted < replica.replicas:
        raise Conflict(f"Kueue admits {admitted} pods of replicaSpecs.{name}, and it has {replica.replicas}")
    return None


def _of_flavours(
    assigned: Mapping[str, Any], flavours: Mapping[str, Manifest]
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Node labels and tolerations of the flavours that a set of pods was assigned, each flavour once."""
    selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    for name in dict.fromkeys((assigned.get("flavors") or {}).values()):
        spec = flavours[name].get("spec") or {}
        selector |= spec.get("nodeLabels") or {}
        tolerations += [one for one in spec.get("tolerations") or () if one not in tolerations]
    return selector, tolerations


def _joined(there: Mapping[str, str], more: Mapping[str, str] | None, by: str) -> dict[str, str]:
    for name, value in (more or {}).items():
        if there.get(name, value) != value:
            raise Conflict(f"{by} {name}={value}, and it is {there[name]} already")
    return {**there, **(more or {})}


@dataclass(frozen=True)
class Slices:
    """The Workloads of one job: the current one, and the one that is to replace it when the job asks for more workers.

    Kueue calls them slices of an elastic workload (v0.19, pkg/workloadslicing). When it admits the second, it finishes
    the first in the same step. So the job's pods have quota at every moment.
    """

    current: Workload | None
    successor: Workload | None = None
    """Asks for the place of the current one, and is not admitted yet."""
    others: tuple[Workload, ...] = ()
    """What is left of ours besides, and not being deleted: nothing needs it."""

    @property
    def covers(self) -> bool:
        """Whether the successor has the quota of the current one, which is over, and waits for admission checks."""
        return self.successor is not None and self.successor.in_force


def slices_of(situation: Situation) -> Slices:
    """The job's Workloads. One that was admitted in the place of that with which the job runs counts from then on."""
    entry = situation.status.queue
    found = [Workload(one) for one in situation.children.owned(situation.group_job, (kueue.KIND,))]
    if not found:
        return Slices(None)
    uid, name = (entry.uid, entry.workload) if entry else ("", "")
    found.sort(key=lambda one: (one.uid != uid, deleting(one.manifest), one.name != name, one.name))
    first = found[0]
    replaced = first.name if first.uid == uid or not uid else name
    successors = [one for one in found if replaced and one.replaces == replaced and not one.is_going]
    successor = successors[0] if successors else None
    if uid and successor is not None and successor.admitted:
        first, successor = successor, None
    kept = {one.uid for one in (first, successor) if one is not None}
    others = (one for one in found if one.uid not in kept and one.shape is not None and not one.is_going)
    return Slices(first, None if successor is first else successor, tuple(others))


def waiting_words(situation: Situation) -> str:
    """That a job that runs asks its queue for more workers, and what Kueue says about it. Without its label, that it
    asks for none. Otherwise empty."""
    entry, successor = situation.status.queue, slices_of(situation).successor
    if entry is None or not entry.runs:
        return ""
    if kueue.queue_of(situation.spec_job) is None:
        return f"label {kueue.QUEUE} is gone, so no more are asked for"
    if successor is None:
        return ""
    words = f"{successor.asked(Role.WORKER.value)[0]} workers are asked for in queue {successor.queue}"
    said = successor.condition(QUOTA_RESERVED).get("message")
    return f"{words}; Kueue says: {said}" if said else words


def priority(situation: Situation) -> tuple[Mapping[str, Any] | None, str]:
    """The class that the job names, and what is said where there is none such. Raises Unread."""
    named = kueue.priority_class_of(situation.group_job, situation.defaults)
    if named is None:
        return None, ""
    (found,) = situation.children.found(named)
    if found is None:
        kind, name = named
        field = f"label {kueue.PRIORITY_CLASS}" if kind == "WorkloadPriorityClass" else "scheduling.priorityClassName"
        return None, f"{field}: there is no {kind} {name}; the job is queued as soon as there is"
    return kueue.priority(*named, int(found.get("value", 0))), ""


def priority_changes(situation: Situation, workload: Workload) -> tuple[Action, ...]:
    """What to write where the job names another WorkloadPriorityClass. That may change at any time, but for a Workload
    that holds quota and had no such class. A class that is not there changes nothing. Raises Unread."""
    named, now = kueue.priority_class_of(situation.group_job, situation.defaults), workload.priority_class
    if workload.shape is None or named is None or named == now or named[0] != "WorkloadPriorityClass":
        return ()
    if workload.reserved and (now is None or now[0] != named[0]):
        return ()
    chosen, _ = priority(situation)
    return () if chosen is None else (workload.change(chosen, f"the job's priority class is {named[1]}"),)


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


def find_in_doubt(situation: Situation) -> Situation:
    """The situation with what the API server has of the Workload that the job's place in the queue names, if that is in
    doubt. Raises Unread.

    A job that has ended names none any more that is gone or over: nobody asks for it again.
    """
    job, children, status = situation.group_job, situation.children, situation.status
    if status.queue is None or not _is_in_doubt(situation, status.queue):
        return situation
    key = kueue.KIND, status.queue.workload
    (read,) = children.found(key)
    workload = Workload(read) if read and labels.controller_uid(read) == job.metadata.uid else None
    if workload and not (workload.is_going or (status.ended and workload.finished)):
        others = (one for one in children.objects if (one["kind"], one["metadata"]["name"]) != key)
        return replace(situation, children=replace(children, objects=(*others, workload.manifest)))
    return situation.with_status(status.but(queue=status.queue.but(workload=""))) if status.ended else situation


def _is_in_doubt(situation: Situation, entry: QueueEntry) -> bool:
    """Whether the Workload of this place, or its admission, may be there and is not seen. A Workload whose place
    another one has taken is over."""
    if not entry.workload or situation.children.kueue is not Kueue.THERE:
        return False
    runs = entry.runs and not situation.status.ended
    seen = map(Workload, situation.children.owned(situation.group_job, (kueue.KIND,)))
    return not any(
        (one.name == entry.workload and (not runs or (one.uid == entry.uid and one.admitted)))
        or (one.in_force and one.replaces == entry.workload)
        for one in seen
    )
