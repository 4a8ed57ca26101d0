# SPDX-License-Identifier: Apache-2.0
"""One job's history as whole plans make it: its pods, what becomes of them, and what each plan does about it."""

import json
from copy import deepcopy
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.objects import labels, topology
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Create, Delete, Event, Plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW


class History:
    """One job whose pods all run, and what becomes of it. A pod that is deleted stays until a test takes it away."""

    def __init__(self, job: Job) -> None:
        self.job, self.now = job, NOW
        self.reports: dict[str, dict[str, Any]] = {}
        """What each task's supervisor says, by task id."""
        self.events: list[Event] = []
        self.pods = {pod["metadata"]["name"]: pod for pod in builders.all_pods(job).values()}
        self.others = [builders.stored(one) for one in shared_objects(job)]
        self.look(NOW)

    def look(self, now: datetime) -> dict[str, Any]:
        """One plan, carried out; the status after it."""
        made = self.plan(now)
        self.events += made.events
        if made.status is not None:
            self.job = builders.with_status(self.job, json.loads(json.dumps(made.status)))
        for action in made.actions:
            if isinstance(action, Create) and action.kind == "Pod":
                self.pods[action.name] = {**builders.stored(action.manifest, now), "status": builders.running()}
            elif isinstance(action, Delete) and "deletionTimestamp" not in self.pods[action.name]["metadata"]:
                self.pods[action.name] = builders.deleting(self.pods[action.name], now, 60)
        return self.job.status

    def plan(self, now: datetime) -> Plan:
        self.now = now
        children = Children((*self.pods.values(), *self.others), reports=self.reports)
        return builders.plan_answered(self.job, children, now)

    def ends(self, task: str, status: dict[str, Any]) -> None:
        """The task's newest pod has this status from now on."""
        mine = [pod for pod in self.pods.values() if labels.task_id(pod) == task]
        max(mine, key=topology.attempt_of)["status"] = deepcopy(status)

    def goes(self, *names: str) -> None:
        for name in names:
            del self.pods[name]

    @property
    def charged(self) -> int:
        return int(self.job.status["internal"]["incident"].get("charged", 0))

    def end_what_is_deleted(self) -> None:
        """Kubelets end the pods that are told to."""
        self.goes(*(name for name, pod in self.pods.items() if "deletionTimestamp" in pod["metadata"]))

    @property
    def total(self) -> int:
        """How many restarts are counted."""
        return int(self.job.status.get("restarts", {}).get("total", 0))
