# SPDX-License-Identifier: Apache-2.0
"""A queued job and its Workload: each `look` is one plan, carried out; the test is Kueue, kubelet and user."""

import copy
from dataclasses import replace
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.controller.stored_fields import kept
from dtjob.objects import kueue
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Event, PatchWorkload, Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children, Unread
from dtjob.plan.seen.workload import Kueue
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

QUEUE = {kueue.QUEUE: "team-a"}
CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}}
SPOT = {
    "kind": "ResourceFlavor",
    "metadata": {"name": "spot"},
    "spec": {"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]},
}


def labelled(job: Job, labels: dict[str, str]) -> Job:
    """The job with exactly these labels."""
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"labels": labels})})


def queued_job(labels: dict[str, str] | None = None, **spec: Any) -> Job:
    """A job with the label of a queue."""
    return labelled(builders.job(**spec), QUEUE if labels is None else labels)


def merged(there: Any, patch: Any) -> Any:
    """RFC 7386, as an API server merges."""
    if not isinstance(patch, dict):
        return patch
    result = dict(there) if isinstance(there, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def condition(type_: str, holds: bool, reason: str = "ByTest", message: str = "", now: datetime = NOW) -> Manifest:
    """One condition of a Workload."""
    said = {"type": type_, "status": str(holds), "reason": reason, "message": message}
    return {**said, "lastTransitionTime": times.rfc3339(now)}


class Story:
    """See the module. `there`: other objects of the cluster, by kind and name."""

    def __init__(self, labels: dict[str, str] | None = None, kueue: Kueue = Kueue.THERE, **spec: Any) -> None:
        self.job = queued_job(labels, **spec)
        self.children = Children(kueue=kueue)
        self.there: dict[tuple[str, str], Manifest] = {("ResourceFlavor", "spot"): SPOT}
        self.events: list[Event] = []
        self.version = 10_000

    # What the operator does

    def look(self, now: datetime = NOW) -> Plan:
        """One plan, carried out."""
        made = self._answered(now)
        self.job = builders.with_status(self.job, made.status or self.job.status)
        others = [one for one in made.actions if not isinstance(one, PatchWorkload)]
        before = self.children
        self.children = builders.carried_out(before, replace(made, actions=tuple(others)), now)
        self.children = replace(self.children, kueue=before.kueue)
        for action in made.actions:
            if isinstance(action, PatchWorkload):
                self._patch(action)
        self.events += made.events
        return made

    def settle(self, now: datetime = NOW) -> None:
        """Plans until nothing is left to do."""
        for _ in range(12):
            if self.look(now) == Plan() or self._idle(now):
                return
        raise AssertionError("the plans do not come to an end")

    def _idle(self, now: datetime) -> bool:
        made = self._answered(now)
        return not made.actions and made.status is None

    def _answered(self, now: datetime) -> Plan:
        children = self.children
        while True:
            try:
                return plan(self.job, children, now, NO_DEFAULTS)
            except Unread as unread:
                asked = {key: self.there.get(key) or self._stored(*key) for key in unread.objects if key[0] != "Pod"}
                gone = {key: None for key in unread.objects if key[0] == "Pod"}
                children = replace(children, read={**children.read, **asked, **gone})

    def _patch(self, action: PatchWorkload) -> None:
        found = self.there.get((kueue.KIND, action.name)) or self._stored(kueue.KIND, action.name)
        assert (found["metadata"]["uid"], found["metadata"]["resourceVersion"]) == (action.uid, action.version)
        self.there.pop((kueue.KIND, action.name), None)
        self.put(merged(found, action.body))

    def _stored(self, kind: str, name: str) -> Manifest | None:
        found = (one for one in self.children.objects if (one["kind"], one["metadata"]["name"]) == (kind, name))
        return next(found, None)

    # What others do

    def put(self, workload: Manifest) -> None:
        """The Workload as it is now, in a new version; the operator holds of it what its store keeps."""
        self.version += 1
        changed = copy.deepcopy(workload)
        changed["metadata"]["resourceVersion"] = str(self.version)
        others = [one for one in self.children.objects if one["metadata"]["uid"] != changed["metadata"]["uid"]]
        self.children = replace(self.children, objects=(*others, kept(changed)))

    def say(self, *conditions: Manifest, of: Manifest | None = None, **status: Any) -> None:
        """Kueue writes into the Workload's status; `of`: into that one's."""
        workload = of or self.workload
        there = {one["type"]: one for one in (workload.get("status") or {}).get("conditions") or ()}
        there |= {one["type"]: one for one in conditions}
        self.put(merged(workload, {"status": {"conditions": list(there.values()), **status}}))

    def admit(
        self, now: datetime = NOW, flavours: dict[str, str] | None = None, of: Manifest | None = None, **status: Any
    ) -> None:
        """Kueue admits the Workload; `of`: that one."""
        workload = of or self.workload
        sets = workload["spec"]["podSets"]
        assigned = [{"name": one["name"], "count": one["count"], "flavors": flavours or {}} for one in sets]
        said = [condition(type_, True, now=now) for type_ in ("QuotaReserved", "Admitted")]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        self.say(*said, condition("Evicted", False), of=workload, admission=admission, **status)

    def evict(self, reason: str = "Preempted", message: str = "Preempted to accommodate a workload") -> None:
        """Kueue wants the quota back."""
        self.say(condition("Evicted", True, reason, message))

    def run(self, now: datetime = NOW) -> None:
        """All pods run, and the operator sees it."""
        self.settle(now)
        for one in self.pods:
            one["status"] = builders.running()
            one["spec"]["nodeName"] = "node-1"
        self.children = replace(self.children, objects=tuple(dict(one) for one in self.children.objects))
        self.settle(now)

    def suspend(self, value: bool) -> None:
        """The user sets spec.suspend."""
        self.job = self.job.model_copy(update={"spec": self.job.spec.model_copy(update={"suspend": value})})

    def scale(self, workers: int, least: int | None = None, most: int | None = None) -> None:
        """The user asks for another number of workers, and for other bounds where given."""
        worker = self.job.spec.replica_specs.worker
        changed = worker.model_copy(update={"replicas": workers})
        policy = self.job.spec.elastic_policy
        given = {name: value for name, value in (("min_replicas", least), ("max_replicas", most)) if value is not None}
        policy = policy and policy.model_copy(update=given)
        replicas = self.job.spec.replica_specs.model_copy(update={"worker": changed})
        self.job = self.job.model_copy(
            update={
                "spec": self.job.spec.model_copy(update={"replica_specs": replicas, "elastic_policy": policy}),
                "metadata": self.job.metadata.model_copy(update={"generation": self.job.metadata.generation + 1}),
            }
        )

    def label(self, **labels: str) -> None:
        """The user sets the job's labels."""
        self.job = labelled(self.job, labels)

    # What there is

    @property
    def workload(self) -> Manifest | None:
        """The job's Workload."""
        return next((one for one in self.children.objects if one["kind"] == kueue.KIND), None)

    @property
    def workloads(self) -> dict[int, Manifest]:
        """The job's Workloads, by how many workers each asks for."""
        found = (one for one in self.children.objects if one["kind"] == kueue.KIND)
        return {next(s["count"] for s in one["spec"]["podSets"] if s["name"] == "worker"): one for one in found}

    @property
    def pods(self) -> list[Manifest]:
        """The job's pods."""
        return [one for one in self.children.objects if one["kind"] == "Pod"]

    def said(self, type_: str) -> tuple[str, str] | None:
        """Status and reason of one of the Workload's conditions."""
        found = (self.workload or {}).get("status", {}).get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in found if one["type"] == type_), None)

    def own(self, type_: str) -> tuple[str, str] | None:
        """Status and reason of one of the job's conditions."""
        found = self.job.status.get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in found if one["type"] == type_), None)

    @property
    def stands(self) -> tuple[str, str]:
        """The job's phase and reason."""
        return self.job.status["phase"], self.job.status["reason"]


def kinds(made: Plan) -> list[str]:
    """The plan's actions, in short."""
    short = {Create: "make", Delete: "delete", PatchWorkload: "write"}
    return [f"{short[type(one)]} {getattr(one, 'kind', 'Workload')}" for one in made.actions if type(one) in short]
