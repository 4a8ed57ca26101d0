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
from dtjob.plan.actions import Create, Delete, PatchWorkload, Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children, Unread
from dtjob.plan.seen.workload import Kueue
from tests.unit.operator import builders, story
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


class Story(story.Story):
    """See the module. `there`: other objects of the cluster, by kind and name."""

    def __init__(self, labels: dict[str, str] | None = None, kueue: Kueue = Kueue.THERE, **spec: Any) -> None:
        super().__init__(queued_job(labels, **spec))
        self.children = Children(kueue=kueue)
        self.there: dict[tuple[str, str], Manifest] = {("ResourceFlavor", "spot"): SPOT}
        self.version = 10_000

    def plan(self, now: datetime) -> Plan:
        children = self.children
        while True:
            try:
                return plan(self.job, children, now, NO_DEFAULTS)
            except Unread as unread:
                asked = {key: self.there.get(key) or self._stored(*key) for key in unread.objects if key[0] != "Pod"}
                gone = {key: None for key in unread.objects if key[0] == "Pod"}
                children = replace(children, read={**children.read, **asked, **gone})

    def carry_out(self, made: Plan, now: datetime) -> None:
        others = tuple(one for one in made.actions if not isinstance(one, PatchWorkload))
        kueue = self.children.kueue
        super().carry_out(replace(made, actions=others), now)
        self.children = replace(self.children, kueue=kueue)
        for action in made.actions:
            if isinstance(action, PatchWorkload):
                self._patch(action)

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
        self,
        now: datetime = NOW,
        flavours: dict[str, str] | None = None,
        of: Manifest | None = None,
        most: int = 100,
        **more: Any,
    ) -> None:
        """Kueue admits the Workload; `of`: that one. No set gets more pods than `most`; `more` is assigned to each."""
        workload = of or self.workload
        each = {"flavors": flavours or {}, **more}
        sets = workload["spec"]["podSets"]
        assigned = [{"name": one["name"], "count": min(one["count"], most), **each} for one in sets]
        said = [condition(type_, True, now=now) for type_ in ("QuotaReserved", "Admitted")]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        self.say(*said, condition("Evicted", False), of=workload, admission=admission)

    def evict(self, reason: str = "Preempted", message: str = "Preempted to accommodate a workload") -> None:
        """Kueue wants the quota back."""
        self.say(condition("Evicted", True, reason, message))

    def reserve(self, of: Manifest | None = None) -> None:
        """The Workload has its quota, and an admission check is open; `of`: that one."""
        check = {"name": "nodes", "state": "Pending", "message": "asking for nodes"}
        said = condition("QuotaReserved", True), condition("Evicted", False)
        self.say(*said, of=of, admission={"clusterQueue": "research"}, admissionChecks=[check])

    def ends(self, *roles: str, now: datetime) -> None:
        """The pods of these roles finish."""
        names = [one["metadata"]["name"].removeprefix("digits-") for one in self.pods]
        for name in names:
            if name.split("-")[0] in roles:
                self.becomes(name, builders.ended(0, now))

    def suspend(self, value: bool) -> None:
        """The user sets spec.suspend."""
        self.change(suspend=value)

    def scale(self, workers: int, least: int | None = None) -> None:
        """The user asks for another number of workers, and for another minimum where given."""
        policy = self.job.spec.elastic_policy
        if least is not None:
            policy = policy.model_copy(update={"min_replicas": least})
        self.change(workers, elastic_policy=policy)
        metadata = self.job.metadata
        self.job = self.job.model_copy(
            update={"metadata": metadata.model_copy(update={"generation": metadata.generation + 1})}
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

    def said(self, type_: str) -> tuple[str, str] | None:
        """Status and reason of one of the Workload's conditions."""
        found = (self.workload or {}).get("status", {}).get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in found if one["type"] == type_), None)


def running(**spec: Any) -> Story:
    """A job with checkpoints that was admitted and runs."""
    story = Story(checkpoint=CLAIM, **spec)
    story.settle()
    story.admit(flavours={"cpu": "spot"})
    story.run()
    assert story.stands == ("Running", "AllTasksRunning")
    return story


def prebuilt(**metadata: Any) -> Manifest:
    """A Workload that somebody has made for the job, which the watch does not show."""
    sets = [{"name": "chief", "count": 1}, {"name": "worker", "count": 2}]
    stored = {"name": "theirs", "namespace": "default", "uid": "u", "resourceVersion": "7", **metadata}
    spec = {"queueName": "team-a", "podSets": sets}
    return {"apiVersion": kueue.API_VERSION, "kind": kueue.KIND, "metadata": stored, "spec": spec}


BY_ANOTHER = [{"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "x", "controller": True}]
"""Owner references of an object that another controller manages."""


def kinds(made: Plan) -> list[str]:
    """The plan's actions, in short."""
    short = {Create: "make", Delete: "delete", PatchWorkload: "write"}
    return [f"{short[type(one)]} {getattr(one, 'kind', 'Workload')}" for one in made.actions if type(one) in short]
