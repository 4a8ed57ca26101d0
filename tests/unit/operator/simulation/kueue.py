# SPDX-License-Identifier: Apache-2.0
"""A Kueue in memory, which admits Workloads and takes its quota back; and what must hold of a job in a queue."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from dtjob import times
from dtjob.api.job import Job
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload
from dtjob.plan.seen.children import ended
from dtjob.plan.seen.workload import Workload
from tests.unit.operator.simulation.facts import Facts
from tests.unit.operator.simulation.invariants import HEARD_WITHIN

ADMITS_AFTER = 0.1
"""Seconds that it takes to find quota for a Workload, where there is any."""
REPLACED = "WorkloadSliceReplaced"
"""Why a Workload is finished when another is admitted in its place."""
FLAVOUR: Manifest = {
    "apiVersion": kueue.API_VERSION,
    "kind": "ResourceFlavor",
    "metadata": {"name": "spot"},
    "spec": {"nodeLabels": {"pool": "spot"}},
}


class _Cluster(Protocol):
    objects: dict[tuple[str, str], Manifest]

    def put(self, manifest: Manifest) -> Manifest: ...

    def change(self, kind: str, name: str, change: Callable[[Manifest], None]) -> None: ...


class SimulatedKueue:
    """What Kueue's own controllers do to Workloads: it touches nothing else."""

    def __init__(
        self, cluster: _Cluster, clock: Callable[[], datetime], later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._cluster, self._clock, self._later = cluster, clock, later
        self.open = True
        """Whether there is quota for all that come."""
        cluster.put(FLAVOUR)

    def sees(self, type_: str, manifest: Manifest) -> None:
        """Something has changed: where there is quota for all, a Workload gets its part soon."""
        if self.open and type_ != "DELETED" and manifest["kind"] == kueue.KIND:
            name = manifest["metadata"]["name"]
            self._later(ADMITS_AFTER, lambda: self.admit(name))

    def opens(self) -> None:
        """From now on there is quota for all; what somebody deactivated is active again."""
        self.open = True
        for name in self.names():
            self.activate(name, True)
            self.admit(name)

    def names(self) -> list[str]:
        """The Workloads that there are."""
        return sorted(name for kind, name in self._cluster.objects if kind == kueue.KIND)

    def workload(self, name: str) -> Workload | None:
        """The Workload of this name, None where there is none."""
        found = self._cluster.objects.get((kueue.KIND, name))
        return Workload(found) if found else None

    def waiting(self) -> list[str]:
        """Those that could be admitted now."""
        held = [name for name in self.in_force() if (found := self.workload(name)) and not found.admitted]
        return [*held, *(name for name in self.names() if self._may_have_quota(name))]

    def in_force(self) -> list[str]:
        """Those that hold quota."""
        return [name for name in self.names() if (found := self.workload(name)) and found.in_force]

    def admit(self, name: str, fewer: int = 0) -> None:
        """Give it quota, where it has none yet, and all admission checks are well."""
        self.reserve(name, fewer)
        if (found := self.workload(name)) and found.in_force and not found.admitted:
            self._say(name, {"Admitted": True}, "ByTest")

    def reserve(self, name: str, fewer: int = 0) -> None:
        """Give it quota while admission checks are open; with `fewer` for so many workers fewer than it asks for, as
        far as it says that it takes fewer."""
        if not self._may_have_quota(name):
            return
        sets = self._cluster.objects[kueue.KIND, name]["spec"]["podSets"]
        assigned = [
            {
                "name": one["name"],
                "count": max(one.get("minCount", one["count"]), one["count"] - fewer),
                "flavors": {"cpu": "spot"},
            }
            for one in sets
        ]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        self._say(name, {"QuotaReserved": True, "Evicted": False}, "ByTest", admission=admission)
        if (found := self.workload(name)) and self.workload(found.replaces):
            self._say(found.replaces, {"Finished": True}, REPLACED)

    def evict(self, name: str, reason: str) -> None:
        """Ask for its quota back."""
        if (found := self.workload(name)) and found.in_force:
            self._say(name, {"Evicted": True}, reason)

    def activate(self, name: str, active: bool) -> None:
        """An administrator, or Kueue itself, says whether it may be admitted at all. What is inactive is evicted."""
        found = self.workload(name)
        if found is None or found.active == active:
            return
        self._cluster.change(kueue.KIND, name, lambda one: one["spec"].update(active=active))
        if not active:
            self.evict(name, "Deactivated")

    def _may_have_quota(self, name: str) -> bool:
        found = self.workload(name)
        return found is not None and found.active and not (found.reserved or found.finished or found.is_going)

    def _say(self, name: str, said: dict[str, bool], reason: str, **status: Any) -> None:
        now = times.rfc3339(self._clock())

        def change(one: Manifest) -> None:
            there = {old["type"]: old for old in one.setdefault("status", {}).get("conditions") or ()}
            for type_, holds in said.items():
                there[type_] = {
                    "type": type_,
                    "status": str(holds),
                    "reason": reason,
                    "message": "",
                    "lastTransitionTime": now,
                }
            one["status"] |= {"conditions": list(there.values()), **status}

        self._cluster.change(kueue.KIND, name, change)


def owner_of(workload: Manifest) -> str:
    """The uid of the job that a Workload is for."""
    return labels.controller_uid(workload) or ""


_WORKER = re.compile(r"-worker-(\d+)-")

Objects = Mapping[tuple[str, str], Manifest]


class QuotaRules:
    """Raises AssertionError at the call that breaks a rule."""

    def __init__(self, objects: Objects, facts: Mapping[str, Facts], lost: set[str]) -> None:
        self._objects, self._facts, self._lost = objects, facts, lost
        self._admitted: set[str] = set()
        """Uids of Workloads that held quota when last seen."""
        self._stopped: dict[str, datetime] = {}
        """When the job's admission ended, by uid of the job."""
        self._unheard: set[str] = set()
        """Jobs of whose admission's end the operator has no watch to hear."""

    def sees(self, type_: str, manifest: Manifest, now: datetime, watches: bool) -> None:
        """A Workload has changed. No watch tells of one without our label."""
        if manifest["kind"] != kueue.KIND:
            return
        watches = watches and labels.JOB_NAME in labels.of(manifest)
        uid, job = manifest["metadata"]["uid"], owner_of(manifest)
        if type_ != "DELETED" and Workload(manifest).in_force:
            self._admitted.add(uid)
        elif type_ != "DELETED" and Workload(manifest).replaced:
            self._admitted.discard(uid)  # the one in its place has quota
        elif uid in self._admitted:
            self._admitted.remove(uid)
            self._stopped[job] = now
            if not watches:
                self._unheard.add(job)

    def watch_is_lost(self, now: datetime) -> None:
        """What is on its way is lost too."""
        self._unheard |= {job for job, at in self._stopped.items() if now - at <= HEARD_WITHIN}

    def hears_again(self, now: datetime) -> None:
        """The operator has listed all."""
        self._stopped.update(dict.fromkeys(self._unheard, now))
        self._unheard.clear()

    def check_status(self, job: Manifest, new: Mapping[str, Any]) -> None:
        """A job that runs is not told to stop while it has quota for what it asks for, unless its user says so."""
        entry, later = ((status.get("queue") or {}) for status in (job.get("status") or {}, new))
        if not entry.get("uid") or later.get("uid") or job["spec"].get("suspend"):
            return
        found = self._objects.get((kueue.KIND, entry["workload"]))
        current = Workload(found) if found and found["metadata"]["uid"] == entry["uid"] else None
        if current and current.admitted and owner_of(current.manifest) == job["metadata"]["uid"]:
            asked = kueue.shape_of(Job.model_validate(job))
            assert current.shape not in (None, asked), f"a job is told to stop, and {current.name} is admitted"

    def check_create(self, job: Manifest, made: Manifest, now: datetime) -> None:
        """A pod of a job in a queue is made only while its Workload is admitted, and written down as that."""
        uid, name = job["metadata"]["uid"], made["metadata"]["name"]
        status = job.get("status") or {}
        entry = status.get("queue")
        if entry is None or uid in self._unheard:
            return
        assert entry.get("uid"), f"{name} is made for a job that waits in a queue"
        found = self._objects.get((kueue.KIND, entry["workload"]))
        current = Workload(found) if found and found["metadata"]["uid"] == entry["uid"] else None
        if current and current.replaced:
            current = self._successor(job, current)
        elif current and not current.admitted:
            current = None
        if current:
            self._check_workers(job, made, current)
            return
        stopped = self._stopped.get(uid)
        assert stopped is not None, f"{name} is made for a job that was never admitted"
        assert now - stopped <= HEARD_WITHIN, f"{name} is made {now - stopped} after its admission has ended"

    def check_delete(self, workload: Manifest) -> None:
        """The operator deletes a Workload. One without quota, such as one that asks for more, takes none away."""
        if Workload(workload).reserved and not Workload(workload).finished:
            self._check_no_pods(workload, "is deleted")

    def check_patch(self, workload: Manifest, action: PatchWorkload) -> None:
        """The operator writes into a Workload: quota goes only with the last pod. What has quota asks for no more."""
        if Workload(workload).reserved and "podSets" in (action.body.get("spec") or {}):
            asked = {one["name"]: one for one in workload["spec"]["podSets"]}
            for one in action.body["spec"]["podSets"]:
                was = asked[one["name"]]
                assert {**one, "count": 0} == {**was, "count": 0}, f"{action.name} has quota, and is written anew"
                assert one["count"] <= was["count"], f"{action.name} has quota, and asks for more"
        status = action.body.get("status") or {}
        finished = any((one["type"], one["status"]) == ("Finished", "True") for one in status.get("conditions") or ())
        if finished or ("admission" in status and status["admission"] is None):
            self._check_no_pods(workload, "gives its quota back")

    def _successor(self, job: Manifest, current: Workload) -> Workload | None:
        """The Workload of the job that has taken the place of this one, while it has quota."""
        uid = job["metadata"]["uid"]
        own = (Workload(one) for (kind, _), one in self._objects.items() if kind == kueue.KIND and owner_of(one) == uid)
        return next((one for one in own if one.in_force and one.replaces == current.name), None)

    def _check_workers(self, job: Manifest, made: Manifest, current: Workload) -> None:
        """No more workers, and placeholders for them, than there is quota for."""
        if not _WORKER.search(made["metadata"]["name"]):
            return
        uid = job["metadata"]["uid"]
        pods = [one for (kind, _), one in self._objects.items() if kind == "Pod" and labels.controller_uid(one) == uid]
        there = [one for one in pods if not ended(one) and one["metadata"]["uid"] not in self._lost]
        found = (_WORKER.search(one["metadata"]["name"]) for one in (*there, made))
        indexes = {match[1] for match in found if match}
        quota = min(current.counts().get("worker", 0), current.asked("worker")[0])
        assert len(indexes) <= quota, f"{made['metadata']['name']} is one more than the {quota} that there is quota for"

    def _check_no_pods(self, workload: Manifest, what: str) -> None:
        """No pod of the job runs that the operator can see."""
        for (kind, name), one in self._objects.items():
            if kind != "Pod" or labels.controller_uid(one) != owner_of(workload) or ended(one):
                continue
            unseen = labels.JOB_NAME not in labels.of(one) or one["metadata"]["uid"] in self._lost
            assert unseen, f"Workload {workload['metadata']['name']} {what} while {name} runs"
