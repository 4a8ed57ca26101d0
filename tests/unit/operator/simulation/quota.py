# SPDX-License-Identifier: Apache-2.0
"""What must hold of a job in a queue: no pod without an admission, and no quota given back under a pod."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob.api.job import Job
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import PatchWorkload
from dtjob.plan.seen.children import ended
from dtjob.plan.seen.workload import Workload
from tests.unit.operator.simulation.facts import Facts
from tests.unit.operator.simulation.queue import owner_of

HEARD_WITHIN = timedelta(seconds=0.2)
"""So long after an admission has ended pods may still be made that were asked for before."""

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
        for (kind, name), one in self._objects.items():
            if kind != "Pod" or labels.controller_uid(one) != owner_of(workload) or ended(one):
                continue
            unseen = labels.JOB_NAME not in labels.of(one) or one["metadata"]["uid"] in self._lost
            assert unseen, f"Workload {workload['metadata']['name']} {what} while {name} runs"
