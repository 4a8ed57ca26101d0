# SPDX-License-Identifier: Apache-2.0
"""The reconciler with a job in a queue over the simulated cluster: crashes at every single call of such a life."""

from typing import Any

import pytest

from dtjob.api.job import KIND, Job
from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.pace import LONGEST_FIRST_SECONDS, MUCH
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.workload import Workload
from tests.unit.operator import builders
from tests.unit.operator.queued import CLAIM, QUEUE, SPOT, condition
from tests.unit.operator.simulation.api import copied
from tests.unit.operator.simulation.operator import World, job_manifest


class QueuedWorld(World):
    """A cluster with Kueue, which does what the test says."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.kueue.open = False

    def apply(self, job: Job) -> None:
        manifest = job_manifest(job)
        manifest["metadata"]["labels"] = dict(QUEUE)
        self.cluster.put(manifest)

    @property
    def workload(self) -> Workload:
        """The job's Workload."""
        (found,) = self.cluster.of_kind(kueue.KIND)
        return Workload(found)

    def kueue_says(self, *conditions: Manifest, **status: Any) -> None:
        """Kueue writes into the Workload's status."""

        def change(one: Manifest) -> None:
            there = {said["type"]: said for said in one.get("status", {}).get("conditions", ())}
            there |= {said["type"]: said for said in conditions}
            one["status"] = {**one.get("status", {}), "conditions": list(there.values()), **status}

        self.cluster.change(kueue.KIND, self.workload.name, change)

    def admit(self) -> None:
        sets = self.workload.manifest["spec"]["podSets"]
        assigned = [{"name": one["name"], "count": one["count"], "flavors": {"cpu": "spot"}} for one in sets]
        said = [condition(one, True, now=self.now()) for one in ("QuotaReserved", "Admitted")]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        self.kueue_says(*said, condition("Evicted", False), admission=admission)

    def run_all(self) -> None:
        self.run(5)
        for name in self.pods:
            self.cluster.change("Pod", name, lambda one: one.update(status=builders.running()))
        self.run(5)


def world() -> QueuedWorld:
    return QueuedWorld(builders.job(checkpoint=CLAIM))


class UnlabelledWorld(QueuedWorld):
    """With Kueue, and a job that is in no queue."""

    def apply(self, job: Job) -> None:
        World.apply(self, job)


def test_a_kueue_that_does_not_answer_holds_no_pod_up() -> None:
    with world() as made:
        made.cluster.objects["ResourceFlavor", "spot"] = copied(SPOT)
        made.run(5)
        made.admit()
        away = ClusterError("failed calling webhook vworkload.kb.io")
        made.cluster.failing = {f"patch {made.workload.name}: its pods have changed": away}
        made.run_all()
        assert made.job.status["phase"] == "Running"
        assert not made.workload.condition("PodsReady")
        made.cluster.failing = {}
        made.run(60)
        assert made.workload.holds("PodsReady")


def test_a_queue_label_added_before_a_running_jobs_first_status_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkQueue, "at_hand", MUCH + 1)  # so that its first status waits
    with UnlabelledWorld(builders.job(workers=1)) as made:
        made.run(0.3)
        assert not made.job.status
        made.cluster.change(KIND, "digits", lambda one: one["metadata"].update(labels=dict(QUEUE)))
        made.run(LONGEST_FIRST_SECONDS + 2)
        assert len(made.pods) == 2
        assert not [name for name, pod in made.pods.items() if "deletionTimestamp" in pod["metadata"]]
        assert made.job.status["phase"] == "Pending"
        assert not made.cluster.of_kind(kueue.KIND)
