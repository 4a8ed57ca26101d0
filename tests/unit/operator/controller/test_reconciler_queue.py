"""The reconciler with a job in a queue over the simulated cluster: crashes at every single call of such a life."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from dtjob.api.job import KIND, Job
from dtjob.controller.cluster import ClusterError, Refused
from dtjob.controller.patience import LONGEST_FIRST_SECONDS, MUCH
from dtjob.controller.workqueue import WorkQueue
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import ended
from dtjob.plan.workload import Workload
from tests.unit.operator import builders
from tests.unit.operator.queued import CLAIM, QUEUE, SPOT, condition
from tests.unit.operator.simulation.operator import World, job_manifest
from tests.unit.operator.simulation.plain import copied


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


def world() -> closing[QueuedWorld]:
    return closing(QueuedWorld(builders.job(checkpoint=CLAIM)))


def life(made: QueuedWorld) -> dict[str, object]:
    """Queued, admitted, evicted, admitted again, succeeded; what must hold on the way does at each step."""
    if ("ResourceFlavor", "spot") not in made.cluster.objects:
        made.cluster.objects["ResourceFlavor", "spot"] = copied(SPOT)
    made.run(5)
    assert made.pods == {}
    made.admit()
    made.run_all()
    assert {one["spec"]["nodeSelector"]["pool"] for one in made.pods.values()} == {"spot"}
    assert made.workload.holds("PodsReady")
    made.kueue_says(condition("Evicted", True, "Preempted", "for another"))
    while made.workload.reserved:
        assert any(not ended(one) for one in made.pods.values()) or made.now() < builders.at(300)
        left = [one for one in made.pods.values() if not ended(one)]
        made.run(1)
        assert made.workload.reserved or not left or not made.pods, "quota is given back under pods that run"
    assert made.pods == {}
    made.admit()
    made.run_all()
    for name in made.pods:
        made.cluster.change("Pod", name, lambda one: one.update(status=builders.ended(0, made.now())))
    made.run(30)
    status = made.job.status
    last = sorted(name for name in made.pods)
    return {"phase": status["phase"], "restarts": status["restarts"], "pods": last, "over": made.workload.finished}


class UnlabelledWorld(QueuedWorld):
    """With Kueue, and a job that is in no queue."""

    def apply(self, job: Job) -> None:
        World.apply(self, job)


def test_each_call_of_a_queued_jobs_life_may_be_the_operators_last() -> None:
    with world() as made:
        expected = life(made)
        calls = len(made.cluster.calls)
    assert expected == {
        "phase": "Succeeded",
        "restarts": {"total": 0},
        "pods": ["digits-chief-0-1", "digits-worker-0-1", "digits-worker-1-1"],
        "over": True,
    }
    for crash_in in range(calls):
        for before in (True, False):
            with world() as made:
                made.cluster.crash_in, made.cluster.crash_before = crash_in, before
                assert life(made) == expected, f"call {crash_in}, before: {before}"


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


def test_a_webhook_that_refuses_pods_or_does_not_answer_is_named_whoever_set_it() -> None:
    pod = "create Pod digits-chief-0-0"
    for error in (
        Refused('admission webhook "hold.example.com" denied the request: not today'),
        ClusterError('Internal error occurred: failed calling webhook "hold.example.com": connection refused'),
    ):
        with world() as made:
            made.cluster.objects["ResourceFlavor", "spot"] = copied(SPOT)
            made.run(5)
            made.admit()
            made.cluster.failing = {pod: error}
            made.run(60)
            assert made.job.status["reason"] == "Blocked"
            assert '"hold.example.com"' in made.job.status["message"]
            made.cluster.failing = {}
            made.run(60)
            assert "digits-chief-0-0" in made.pods


def test_a_label_put_on_before_the_first_word_of_a_job_that_runs_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkQueue, "at_hand", MUCH + 1)  # so that its first status waits
    made = UnlabelledWorld(builders.job(workers=1))
    try:
        made.run(0.3)
        assert not made.job.status
        made.cluster.change(KIND, "digits", lambda one: one["metadata"].update(labels=dict(QUEUE)))
        made.run(LONGEST_FIRST_SECONDS + 2)
        assert len(made.pods) == 2
        assert not [name for name, pod in made.pods.items() if "deletionTimestamp" in pod["metadata"]]
        assert made.job.status["phase"] == "Pending"
        assert not made.cluster.of_kind(kueue.KIND)
    finally:
        made.close()
