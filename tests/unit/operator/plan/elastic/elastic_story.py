# SPDX-License-Identifier: Apache-2.0
"""An elastic job and its pods, over time."""

from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import is_placeholder
from dtjob.plan.actions import Event, Plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, plan_answered

CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}}


class Story:
    """A job and its pods; each `look` is one plan, carried out: what is deleted has ended at once."""

    def __init__(self, count: int = 4, *, least: int | None = 2, most: int | None = 8, **spec: Any) -> None:
        strategy = spec.pop("strategy", "MultiWorkerMirrored")
        roles: dict[str, Any] = {"chief": {}, "worker": {"replicas": count}}
        bounds = spec.pop("elasticPolicy", {"minReplicas": least, "maxReplicas": most})
        roles |= {"ps": {"replicas": 2}} if strategy == "ParameterServer" else {}
        roles |= {"evaluator": {}} if spec.pop("evaluator", False) else {}
        self.job = builders.job(
            strategy, checkpoint=spec.pop("checkpoint", CLAIM), replicaSpecs=roles, elasticPolicy=bounds, **spec
        )
        self.children = Children()
        self.events: list[Event] = []
        self.said: list[str] = []
        """The messages of its statuses."""

    def change(self, **spec: Any) -> None:
        """What a user or an HPA writes: fields of the spec by their Python names, or `replicas`, `least` and `most`."""
        size = {name: spec.pop(name) for name in ("replicas",) if name in spec}
        names = {"least": "min_replicas", "most": "max_replicas"}
        bounds = {names[name]: spec.pop(name) for name in names if name in spec}
        old = self.job.spec
        worker = old.replica_specs.worker
        assert worker is not None
        spec.setdefault("elastic_policy", old.elastic_policy.model_copy(update=bounds))
        replicas = old.replica_specs.model_copy(update={"worker": worker.model_copy(update=size)})
        self.job = self.job.model_copy(update={"spec": old.model_copy(update={"replica_specs": replicas, **spec})})

    def look(self, now: datetime) -> Plan:
        """One plan, of which everything is carried out."""
        made = plan_answered(self.job, self.children, now)
        self.job = builders.with_status(self.job, made.status or self.job.status)
        self.children = builders.carried_out(self.children, made, now)
        self.events += made.events
        self.said.append(self.job.status["message"])
        return made

    def settle(self, now: datetime) -> None:
        """Plans until nothing is left to do."""
        for _ in range(8):
            made = self.look(now)
            if made.status is None and not made.actions:
                return
        raise AssertionError(f"not settled: {made}")

    @property
    def pods(self) -> list[Manifest]:
        """All pods, placeholders too."""
        return [one for one in self.children.objects if one["kind"] == "Pod"]

    @property
    def placeholders(self) -> list[str]:
        """Their names."""
        return [name for name in builders.names(self.pods) if is_placeholder(name)]

    @property
    def tasks(self) -> list[str]:
        """The names of the pods that train, without the job's name."""
        names = (name for name in builders.names(self.pods) if not is_placeholder(name))
        return [name.removeprefix("digits-") for name in names]

    @property
    def workers(self) -> dict[str, Any]:
        """`status.workers`."""
        found: dict[str, Any] = self.job.status["workers"]
        return found

    def places(self, *names: str, now: datetime, without: tuple[str, ...] = ()) -> None:
        """The scheduler finds a node for these pods (none named: all), and none for those `without`."""
        objects = deepcopy(list(self.children.objects))
        for one in objects:
            name = one["metadata"]["name"].removeprefix("digits-")
            if one["kind"] != "Pod" or (names and name not in names and name not in without):
                continue
            if name in without:
                one["status"] = builders.unschedulable()
            else:
                one["status"] = builders.running()
                one["spec"]["nodeName"] = "node-1"
        self.children = replace(self.children, objects=tuple(objects))
        self.settle(now)

    def becomes(self, name: str, status: dict[str, Any]) -> None:
        """Something happens to this pod, which was placed."""
        objects = deepcopy(list(self.children.objects))
        for one in objects:
            if one["metadata"]["name"] == f"digits-{name}":
                one["status"] = status
                one["spec"]["nodeName"] = "node-1"
        self.children = replace(self.children, objects=tuple(objects))

    def run(self, now: datetime = NOW) -> None:
        """All pods run, and the operator sees it."""
        self.settle(now)
        self.places(now=now)
        assert self.job.status["phase"] == "Running", self.job.status

    def shrunk(self, **options: Any) -> "Story":
        """Began with room for two of four workers, and went on with these at 300."""
        self.settle(NOW)
        self.places(now=NOW, without=("worker-2-0", "worker-3-0"))
        self.settle(builders.at(300))
        self.run(builders.at(301))
        assert self.workers["replicas"] == 2
        return self


def told(story: Story, reason: str) -> list[str]:
    """The messages of the events with this reason."""
    return [one.message for one in story.events if one.reason == reason]


def config_map(pod: Manifest) -> str:
    """The ConfigMap with the cluster spec that a pod mounts."""
    volume = next(one for one in pod["spec"]["volumes"] if one["name"] == "dtjob-cluster")
    return str(volume["configMap"]["name"])


def role(pod: Manifest) -> str:
    """The role that a pod's label says."""
    return labels.of(pod)[labels.ROLE]


__all__ = ["CLAIM", "Job", "Story", "config_map", "role", "told"]
