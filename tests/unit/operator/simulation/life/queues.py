# SPDX-License-Identifier: Apache-2.0
"""Jobs in a queue of Kueue: it admits and evicts them, and people move them and take their Workloads away."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.job import KIND
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from tests.unit.operator.simulation.kueue import owner_of
from tests.unit.operator.simulation.life.suspensions import Suspensions

EVICTIONS = ("Preempted", "PodsReadyTimeout", "NodeFailures", "ClusterQueueStopped")


class Queues(Suspensions):
    """What Kueue and its administrators do."""

    @rule(there_is=st.booleans())
    def quota_for_all(self, there_is: bool) -> None:
        """Whether what comes is admitted by itself."""
        if there_is:
            self.world.kueue.opens()
        else:
            self.world.kueue.open = False

    @precondition(lambda self: self.world.kueue.waiting())
    @rule(data=st.data(), fewer=st.integers(0, 2))
    def is_admitted(self, data: st.DataObject, fewer: int) -> None:
        self.world.kueue.admit(data.draw(st.sampled_from(self.world.kueue.waiting())), fewer)

    @precondition(lambda self: self.world.kueue.waiting())
    @rule(data=st.data(), fewer=st.integers(0, 2), waits=st.sampled_from((0.015, 1.0)))
    def has_quota_while_checks_are_open(self, data: st.DataObject, fewer: int, waits: float) -> None:
        self.world.kueue.reserve(data.draw(st.sampled_from(self.world.kueue.waiting())), fewer)
        self.world.run(waits)

    @precondition(lambda self: self.world.kueue.in_force())
    @rule(data=st.data(), reason=st.sampled_from(EVICTIONS), saves=st.sampled_from((0.015, 1.0, 60.0)))
    def is_evicted_by_its_queue(self, data: st.DataObject, reason: str, saves: float) -> None:
        self.world.kueue.evict(data.draw(st.sampled_from(self.world.kueue.in_force())), reason)
        self.world.run(saves)

    @precondition(lambda self: self.world.kueue.names())
    @rule(data=st.data(), active=st.booleans())
    def workload_is_deactivated(self, data: st.DataObject, active: bool) -> None:
        self.world.kueue.activate(data.draw(st.sampled_from(self.world.kueue.names())), active)

    @precondition(lambda self: self.world.kueue.names())
    @rule(data=st.data())
    def workload_is_deleted(self, data: st.DataObject) -> None:
        """kubectl delete workload."""
        self.world.cluster.remove(kueue.KIND, data.draw(st.sampled_from(self.world.kueue.names())))

    @precondition(lambda self: self.places())
    @rule(data=st.data(), passes=st.sampled_from((0.015, 1.0, 60.0)))
    def workload_loses_its_label(self, data: st.DataObject, passes: float) -> None:
        self.take_workloads_label(data.draw(st.sampled_from(self.places())))
        self.world.run(passes)

    def take_workloads_label(self, name: str) -> None:
        """kubectl label workload NAME LABEL-."""
        one = self.world.cluster.objects[kueue.KIND, name]
        if (of := labels.of(one).get(labels.JOB_NAME)) is not None:
            self.stripped[one["metadata"]["uid"]] = {labels.JOB_NAME: of}
            self.world.cluster.change(kueue.KIND, name, lambda one: one["metadata"]["labels"].pop(labels.JOB_NAME))

    def places(self) -> list[str]:
        """The Workloads with which jobs wait and run."""
        entries = (self.status(name).get("queue") or {} for name in self.names)
        return [name for entry in entries if (name := entry.get("workload")) in self.world.kueue.names()]

    @precondition(lambda self: self.names)
    @rule(data=st.data(), queue=st.sampled_from(("team-a", "team-b", None)))
    def is_moved_to_another_queue(self, data: st.DataObject, queue: str | None) -> None:
        """kubectl label dtjob NAME, at any moment."""

        def change(job: Manifest) -> None:
            found = job["metadata"].setdefault("labels", {})
            found.pop(kueue.QUEUE, None)
            if queue is not None:
                found[kueue.QUEUE] = queue

        self.world.cluster.change(KIND, data.draw(st.sampled_from(self.names)), change)

    def admitted_workers(self, name: str) -> int | None:
        """With how many workers the job's queue lets it run, where those are fewer than it asks for: it runs with them
        until it is admitted anew. Without the queue's label it asks for no more."""
        entry = self.status(name).get("queue") or {}
        count = entry.get("podSets", {}).get("worker", {}).get("count")
        found = self.world.kueue.workload(entry.get("workload", ""))
        no_more = found and found.admitted and (found.counts().get("worker") == count or not self.has_queue(name))
        return count if no_more else None

    def has_queue(self, name: str) -> bool:
        """Whether the job has the label of a queue."""
        return kueue.QUEUE in (self.world.cluster.objects[KIND, name]["metadata"].get("labels") or {})

    def evict_and_admit(self, name: str) -> None:
        """It saves, gives its quota back, and goes on when it is admitted again; nothing is counted for it."""
        found = self.world.kueue.workload((self.status(name).get("queue") or {}).get("workload", ""))
        if found is None or not found.admitted or not self.has_queue(name):
            return  # without the label it goes on in no queue
        before = self.status(name)
        self.world.kueue.open = False
        self.world.kueue.evict(found.name, "Preempted")
        self.world.run(1)
        self.kubelets_end_what_is_deleted()
        self.world.run(1)
        uid, status = self.uid(name), self.status(name)
        assert status["phase"] == "Suspended"
        assert status.get("restarts") == before.get("restarts")
        assert not [one for one in self.pods() if self.facts(one).job_uid == uid], "an evicted job has pods"
        left = self.world.kueue.workload(found.name)
        assert left is None or not left.reserved, "an evicted job keeps its quota"
        self.world.run(3600)
        assert not [one for one in self.pods() if self.facts(one).job_uid == uid], "an evicted job has pods"
        self.world.kueue.opens()
        self.world.run(self.longest_wait())
        self.all_run()
        self.world.run(1)
        assert self.status(name)["phase"] == "Running"
        assert self.status(name).get("restarts") == before.get("restarts")

    def check_quota_is_given_back(self) -> None:
        """What has ended holds none, but for pods that cleanPodPolicy lets run on."""
        ended = {self.uid(name) for name in self.names if not self.goes_on(name)}
        ended -= {self.facts(name).job_uid for name in self.alive()}
        for name in self.world.kueue.names():
            found = self.world.kueue.workload(name)
            if found and owner_of(found.manifest) in ended:
                assert found.finished, f"{name} of a job that has ended holds quota"
