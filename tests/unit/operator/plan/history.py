# SPDX-License-Identifier: Apache-2.0
"""The story of a job whose pods all run: what becomes of them, and what each plan does about it."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.objects import labels, topology
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Delete, Plan
from dtjob.plan.seen.children import Children, deleting
from tests.unit.operator import builders
from tests.unit.operator.story import Story


class History(Story):
    """A pod that is made runs at once. One that is deleted stays until a test takes it away."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.children = Children((*builders.all_pods(job).values(), *map(builders.stored, shared_objects(job))))
        self.look()

    def carry_out(self, made: Plan, now: datetime) -> None:
        told = {action.uid for action in made.actions if isinstance(action, Delete)}
        others = tuple(action for action in made.actions if not isinstance(action, Delete))
        super().carry_out(replace(made, actions=others), now)
        objects = []
        for one in self.children.objects:
            if one["metadata"]["uid"] in told and not deleting(one):
                one = builders.deleting(one, now, 60)
            objects.append({"status": builders.running(), **one} if one["kind"] == "Pod" else one)
        self.children = replace(self.children, objects=tuple(objects))

    def chief_says(self, report: dict[str, Any]) -> None:
        """What the chief's supervisor reports from now on."""
        self.children = replace(self.children, reports={"chief-0": report})

    def ends(self, task: str, status: dict[str, Any]) -> None:
        """The task's newest pod has this status from now on."""
        newest = max((pod for pod in self.pods if labels.task_id(pod) == task), key=topology.attempt_of)
        self.becomes(newest["metadata"]["name"].removeprefix("digits-"), status)

    def end_what_is_deleted(self) -> None:
        """Kubelets end the pods that are told to."""
        self.lose(*builders.names(filter(deleting, self.pods)))
