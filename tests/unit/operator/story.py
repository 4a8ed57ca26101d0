# SPDX-License-Identifier: Apache-2.0
"""A job and its objects over time, as plans make them."""

from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import is_placeholder
from dtjob.plan.actions import Event, Plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW


class Story:
    """Each `look` is one plan, carried out: what is deleted has ended at once. The test is kubelet, node and user."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.children = Children()
        self.events: list[Event] = []

    # What the operator does

    def plan(self, now: datetime) -> Plan:
        return builders.plan_answered(self.job, self.children, now)

    def look(self, now: datetime = NOW) -> Plan:
        """One plan, carried out."""
        made = self.write(now)
        self.carry_out(made, now)
        self.events += made.events
        return made

    def write(self, now: datetime) -> Plan:
        """One plan, of which only the status was written until now."""
        made = self.plan(now)
        self.job = builders.with_status(self.job, made.status or self.job.status)
        return made

    def carry_out(self, made: Plan, now: datetime) -> None:
        self.children = builders.carried_out(self.children, made, now)

    def settle(self, now: datetime = NOW) -> None:
        """Plans until nothing is left to do."""
        for _ in range(12):
            made = self.look(now)
            if made.status is None and not made.actions:
                return
        raise AssertionError(f"not settled: {made}")

    # What others do

    def change(self, replicas: int | None = None, **spec: Any) -> None:
        """What a user or an HPA writes: another number of workers, and fields of the spec by their Python names."""
        if replicas is not None:
            roles = self.job.spec.replica_specs
            worker = roles.worker.model_copy(update={"replicas": replicas})
            spec["replica_specs"] = roles.model_copy(update={"worker": worker})
        self.job = self.job.model_copy(update={"spec": self.job.spec.model_copy(update=spec)})

    def becomes(self, name: str, status: dict[str, Any]) -> None:
        """Something happens to this pod, which was placed; the job's name is left out."""
        self._update({name: status})

    def places(self, *names: str, now: datetime, without: tuple[str, ...] = ()) -> None:
        """The scheduler finds a node for these pods (none named: all), and none for those `without`."""
        found = names or [one.removeprefix("digits-") for one in builders.names(self.pods)]
        self._update(dict.fromkeys(found, builders.running()) | dict.fromkeys(without, builders.unschedulable()))
        self.settle(now)

    def run(self, now: datetime = NOW) -> None:
        """All pods run, and the operator sees it."""
        self.settle(now)
        self.places(now=now)

    def lose(self, *which: str) -> None:
        """The watch shows the objects of these names or uids no more."""
        there = self.children.objects
        left = (one for one in there if {one["metadata"]["name"], one["metadata"]["uid"]}.isdisjoint(which))
        self.children = replace(self.children, objects=tuple(left))

    def _update(self, statuses: dict[str, dict[str, Any]]) -> None:
        objects = list(self.children.objects)
        for index, one in enumerate(objects):
            if one["kind"] == "Pod" and (found := statuses.get(one["metadata"]["name"].removeprefix("digits-"))):
                objects[index] = {**one, "status": deepcopy(found)}
                if found["phase"] != "Pending" or "containerStatuses" in found:
                    objects[index]["spec"] = {**one["spec"], "nodeName": "node-1"}
        self.children = replace(self.children, objects=tuple(objects))

    # What there is

    @property
    def pods(self) -> list[Manifest]:
        """All pods, placeholders too."""
        return [one for one in self.children.objects if one["kind"] == "Pod"]

    @property
    def tasks(self) -> list[str]:
        """The names of the pods of tasks, without the job's name."""
        names = (name for name in builders.names(self.pods) if not is_placeholder(name))
        return [name.removeprefix("digits-") for name in names]

    @property
    def placeholders(self) -> list[str]:
        return [name for name in builders.names(self.pods) if is_placeholder(name)]

    @property
    def workers(self) -> dict[str, Any]:
        """`status.workers`."""
        found: dict[str, Any] = self.job.status["workers"]
        return found

    @property
    def stands(self) -> tuple[str, str]:
        """The job's phase and reason."""
        return self.job.status["phase"], self.job.status["reason"]

    def own(self, type_: str) -> tuple[str, str] | None:
        """Status and reason of one of the job's conditions."""
        found = self.job.status.get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in found if one["type"] == type_), None)
