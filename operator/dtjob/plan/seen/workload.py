# SPDX-License-Identifier: Apache-2.0
"""The Workload of a job: what it says, and what dtjob writes into it.

Kueue and dtjob both write a Workload's status. This file patches the version that was read, so nobody's change is
overwritten. What each step writes is what Kueue's own controllers of jobs write (v0.19, pkg/controller/jobframework).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from dtjob import times
from dtjob.api.words import counted
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Delete, PatchWorkload

QUOTA_RESERVED, ADMITTED = "QuotaReserved", "Admitted"
EVICTED, FINISHED, PODS_READY, REQUEUED = "Evicted", "Finished", "PodsReady", "Requeued"
"""Conditions of a Workload."""
_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")
"""Evictions after which a Workload goes back into its queue at once; after the others Kueue says when."""
_REPLACED = "WorkloadSliceReplaced"
"""Why a Workload is finished whose place another has taken."""
LONGEST_MESSAGE = 32_768


class Kueue(StrEnum):
    """Whether there is Kueue in this cluster, as far as is known."""

    IGNORED = "Ignored"
    """Its labels mean nothing here, as under `dtjob run`."""
    UNKNOWN = "Unknown"
    """Nobody has looked yet."""
    ABSENT = "Absent"
    FORBIDDEN = "Forbidden"
    """Kueue is there, and dtjob may not see Workloads."""
    THERE = "There"


class Workload:
    """One Workload as it was seen."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest, metadata = manifest, manifest["metadata"]
        self._spec: Mapping[str, Any] = manifest.get("spec") or {}
        self._status: Mapping[str, Any] = manifest.get("status") or {}
        self._sets: Sequence[Mapping[str, Any]] = self._spec.get("podSets") or ()
        self._version: str = metadata.get("resourceVersion", "")
        self.name: str = metadata["name"]
        self.uid: str = metadata.get("uid", "")
        self.queue: str = self._spec.get("queueName", "")
        """The LocalQueue that it is in."""
        self.active = self._spec.get("active") is not False
        """Whether Kueue may admit the Workload: neither an administrator nor Kueue has deactivated it."""
        ref = self._spec.get("priorityClassRef")
        self.priority_class: tuple[str, str] | None = (ref["kind"], ref["name"]) if ref else None
        """Kind and name of its class."""
        annotations = metadata.get("annotations") or {}
        self.shape: str | None = annotations.get(kueue.SHAPE)
        """What it was made for; None for one that somebody else has made."""
        self.replaces: str = (annotations.get(kueue.REPLACES) or "").partition("/")[2]
        """The name of the Workload whose place it takes when it is admitted; empty: none's."""
        self.is_going = "deletionTimestamp" in metadata
        """Somebody has deleted it."""
        self.reserved, self.evicted, self.finished = map(self.holds, (QUOTA_RESERVED, EVICTED, FINISHED))
        """Whether the Workload holds quota; is to give its quota back, or has; is over, and will never hold quota."""
        self.replaced = self.finished and self.condition(FINISHED).get("reason") == _REPLACED
        """Whether the Workload is over because another Workload has taken its place."""
        goes_on = not (self.evicted or self.finished or self.is_going)
        self.in_force = self.reserved and goes_on
        """Whether the Workload holds quota that it is not to give back."""
        self.admitted = self.holds(ADMITTED) and goes_on
        """Its pods may be there."""
        self.admission: Mapping[str, Any] = self._status.get("admission") or {}
        """Where its pods are to go; empty if it holds no quota."""
        self.assigned: Sequence[Mapping[str, Any]] = self.admission.get("podSetAssignments") or ()
        """The flavours and places of `admission`, for each set of pods."""
        self.cluster_queue: str = self.admission.get("clusterQueue", "")
        """Whose quota it holds; empty if it holds none."""
        self.checks: Sequence[Mapping[str, Any]] = self._status.get("admissionChecks") or ()
        """Admission checks: what beside quota has to be well, such as nodes that are made for it."""
        placed = any(one.get("topologyAssignment") for one in self.assigned)
        self.in_topology = placed or any(one.get("topologyRequest") for one in self._sets)
        """Kueue places its pods one by one: its numbers stay as they are."""

    def condition(self, type_: str) -> Mapping[str, Any]:
        """This condition, empty if it is not there."""
        found = (one for one in self._status.get("conditions") or () if one["type"] == type_)
        return next(found, {})

    def holds(self, type_: str) -> bool:
        """Whether this condition holds."""
        return self.condition(type_).get("status") == "True"

    def topology_request(self, name: str) -> Mapping[str, Any]:
        """The topology that a set of pods asks for, empty if it asks for none."""
        return next((one.get("topologyRequest") or {} for one in self._sets if one["name"] == name), {})

    def asked(self, name: str) -> tuple[int, int | None]:
        """How many pods of a set it asks for, and the least that it takes; 0 if it has no such set."""
        found = next((one for one in self._sets if one["name"] == name), {"count": 0})
        return found.get("count", 1), found.get("minCount")

    def counts(self) -> dict[str, int]:
        """How many pods of each set were admitted; fewer than asked for where it said `minCount`."""
        asked: dict[str, int] = {one["name"]: one.get("count", 1) for one in self._sets}
        given = {one["name"]: one["count"] for one in self.assigned if one.get("count") is not None}
        return {name: given.get(name, count) for name, count in asked.items()}

    def release(self, now: datetime) -> PatchWorkload:
        """Give the quota back: no pod is left that uses it."""
        why = self.condition(EVICTED)
        reason, message = why.get("reason", ""), why.get("message", "")
        admitted = self.condition(ADMITTED)
        used = self._status.get("accumulatedPastExecutionTimeSeconds", 0)
        if admitted.get("status") == "True":
            used += max(0, int((now - times.parse(admitted["lastTransitionTime"])).total_seconds()))
        changes = [
            (REQUEUED, reason in _REQUEUED_AT_ONCE, reason, message),
            (QUOTA_RESERVED, False, "Pending", message),
            (ADMITTED, False, "NoReservation", "The workload has no reservation"),
            (PODS_READY, False, "WaitForStart", _NOT_READY),
        ]
        status = {"admission": None, "accumulatedPastExecutionTimeSeconds": used}
        return self._patch_status(self._with(changes, now), status, f"all pods have ended ({reason})")

    def finish(self, reason: str, message: str, now: datetime) -> PatchWorkload:
        """Say that it is over, and how; the quota is free from then on."""
        conditions = self._with([(FINISHED, True, reason, message)], now)
        return self._patch_status(conditions, {}, f"the job has ended ({reason})")

    def keep(self, ready: bool, reclaimable: Mapping[str, int], now: datetime) -> PatchWorkload | None:
        """Say whether all pods run, and which will never be needed again; None if it says so already."""
        reclaimed = self._reclaimed(reclaimable)
        status = {} if reclaimed == self._reclaimed({}) else {"reclaimablePods": reclaimed}
        was = self.condition(PODS_READY)
        reason, message = _readiness(ready, was)
        if not status and (was.get("status"), was.get("reason")) == (str(ready), reason):
            return None
        conditions = self._with([(PODS_READY, ready, reason, message)], now)
        return self._patch_status(conditions, status, "its pods have changed")

    def ask_anew(self, made: Manifest) -> PatchWorkload:
        """Ask for what a Workload of the job would ask for that is made now, in the same place of the queue. Only one
        that holds no quota may change so."""
        here = (kueue.SHAPE, kueue.REPLACES, kueue.ELASTIC)
        annotations = {name: made["metadata"]["annotations"].get(name) for name in here}
        body = {"metadata": {"annotations": annotations}, "spec": {"podSets": made["spec"]["podSets"]}}
        return self._patch(body, "the job asks for something else by now")

    def lower(self, full: Manifest, name: str, count: int, shape: str) -> PatchWorkload:
        """Give the quota of some pods of a set back. `full` is this Workload with all its fields: a list is written
        whole, and nothing else in it may change."""
        sets = [{**one, "count": count} if one["name"] == name else one for one in full["spec"]["podSets"]]
        body = {"metadata": {"annotations": {kueue.SHAPE: shape}}, "spec": {"podSets": sets}}
        version = full["metadata"]["resourceVersion"]
        return PatchWorkload(self.name, self.uid, version, body, False, f"{name} needs {counted(count, 'pod')}")

    def change(self, spec: Mapping[str, Any], why: str) -> PatchWorkload:
        """Change fields of its spec."""
        return self._patch({"spec": dict(spec)}, why)

    def delete(self, why: str, *, as_seen: bool = False) -> Delete:
        """Delete this very Workload; `as_seen`: only while nobody has changed it, as by admitting it."""
        return Delete(kueue.KIND, self.name, self.uid, why, self._version if as_seen else "")

    def adopt(self, wanted: Mapping[str, Any]) -> PatchWorkload:
        """Make it that job's for which `wanted` are a child's metadata. It stays somebody else's to change, even if a
        dtjob made it in the cluster from which MultiKueue copied it, with its annotations."""
        owners = [*(self.manifest["metadata"].get("ownerReferences") or ()), *wanted["ownerReferences"]]
        metadata = {"labels": wanted["labels"], "annotations": {kueue.SHAPE: None}, "ownerReferences": owners}
        return self._patch({"metadata": metadata}, "it was made for this job")

    def _reclaimed(self, more: Mapping[str, int]) -> list[dict[str, Any]]:
        """`reclaimablePods`, in the order of the sets: no number ever falls while quota is held."""
        there = {one["name"]: one["count"] for one in self._status.get("reclaimablePods") or ()}
        counts = {one["name"]: one.get("count", 1) for one in self._sets}
        numbers = {name: max(there.get(name, 0), min(more.get(name, 0), count)) for name, count in counts.items()}
        return [{"name": name, "count": number} for name, number in numbers.items() if number]

    def _with(self, changes: Iterable[tuple[str, bool, str, str]], now: datetime) -> list[dict[str, Any]]:
        """The conditions with these set. A time moves only with its status, as Kubernetes' SetStatusCondition has
        it."""
        conditions = {one["type"]: one for one in self._status.get("conditions") or ()}
        for type_, holds, reason, message in changes:
            old, status = conditions.get(type_, {}), str(holds)
            said = {"type": type_, "status": status, "reason": reason or type_, "message": message[:LONGEST_MESSAGE]}
            said["observedGeneration"] = self.manifest["metadata"].get("generation", 0)
            moved = {} if old.get("status") == status else {"lastTransitionTime": times.rfc3339(now)}
            conditions[type_] = {**old, **said, **moved}
        return list(conditions.values())

    def _patch_status(self, conditions: list[dict[str, Any]], more: Mapping[str, Any], why: str) -> PatchWorkload:
        return self._patch({"status": {"conditions": conditions, **more}}, why, status=True)

    def _patch(self, body: Mapping[str, Any], why: str, status: bool = False) -> PatchWorkload:
        return PatchWorkload(self.name, self.uid, self._version, body, status, why)


_NOT_READY = "Not all pods are ready or succeeded"


def _readiness(ready: bool, was: Mapping[str, Any]) -> tuple[str, str]:
    """Reason and message of PodsReady. Kueue has another timeout for pods that come back than for a start."""
    if ready:
        back = was.get("reason") in ("WaitForRecovery", "Recovered")
        return "Recovered" if back else "Started", "All pods reached readiness and the workload is running"
    if was.get("status") == "True" or was.get("reason") == "WaitForRecovery":
        return "WaitForRecovery", "At least one pod has failed, waiting for recovery"
    return "WaitForStart", _NOT_READY
