# SPDX-License-Identifier: Apache-2.0
"""Workers whose number changes: by their users or an HPA, and by the room that there is."""

from math import inf

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.job import KIND
from dtjob.api.status.status import Status
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.life.queues import Queues


class Sizes(Queues):
    """`kubectl scale`, and what the scheduler does."""

    @precondition(lambda self: self.elastic())
    @rule(data=st.data(), count=st.integers(1, 4), waits=st.sampled_from((0.015, 1.0, 60.0)))
    def is_scaled(self, data: st.DataObject, count: int, waits: float) -> None:
        """Its group may still be saving when it is scaled again."""
        self.scale(data.draw(st.sampled_from(self.elastic())), count)
        self.world.run(waits)

    def scale(self, name: str, count: int) -> None:
        """kubectl scale dtjob NAME."""

        def change(job: Manifest) -> None:
            job["spec"]["replicaSpecs"]["worker"]["replicas"] = count
            job["metadata"]["generation"] += 1

        self.world.cluster.change(KIND, name, change)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), waits=st.sampled_from((1.0, 310.0)))
    def finds_no_node(self, data: st.DataObject, waits: float) -> None:
        self.set_status(data.draw(st.sampled_from(self.waiting())), builders.unschedulable())
        self.world.run(waits)

    @precondition(lambda self: self.placeholders())
    @rule(data=st.data(), how=st.sampled_from(("placed", "unschedulable", "rejected", "deleted")))
    def placeholder_is_judged(self, data: st.DataObject, how: str) -> None:
        self.judge(data.draw(st.sampled_from(self.placeholders())), how)

    def judge(self, name: str, how: str) -> None:
        """What becomes of a placeholder."""
        if how == "deleted":
            self.world.cluster.ask_to_delete("Pod", name)
            return
        if how != "unschedulable":
            self.world.cluster.change("Pod", name, lambda one: one["spec"].update(nodeName="node-1"))
        states = {"placed": builders.running(), "unschedulable": builders.unschedulable()}
        self.set_status(name, states.get(how, builders.rejected()))

    def there_is_room(self) -> None:
        """For all placeholders that there are, and those that are told to go have gone."""
        for name in self.placeholders():
            if "deletionTimestamp" in self.world.pods[name]["metadata"]:
                self.world.cluster.remove("Pod", name)
            else:
                self.judge(name, "placed")

    def elastic(self) -> list[str]:
        """The jobs whose workers' number may change."""
        found = self.world.cluster.objects
        return [name for name in self.names if found[KIND, name]["spec"].get("elasticPolicy") is not None]

    def be_scaled(self, name: str) -> None:
        """It comes to what its spec says, with room for all, up and down. Without its queue's label, it comes to no
        more than its queue has admitted."""
        for desired in (4, 1, 3):
            if name not in self.elastic() or not self.goes_on(name) or Status.read(self.status(name)).internal.finished:
                return  # none begins once a task has finished
            before, count = self.status(name).get("restarts"), min(desired, self.may_have(name))
            self.scale(name, desired)
            for _ in range(10):
                self.world.run(1)
                self.garbage_is_collected()  # a ConfigMap of the job before may bear the name of this group's
                self.there_is_room()
                self.world.run(1)
                self.kubelets_end_what_is_deleted()
                self.world.run(self.longest_wait())
                self.all_run()
            self.world.run(1)
            status = self.status(name)
            assert (status["workers"]["desired"], status["workers"]["replicas"]) == (desired, count), status["workers"]
            assert (status["phase"], status.get("restarts")) == ("Running", before), f"{before} before {status}"
            assert len(self.pods(lambda one, name=name: self.is_worker_of(one, name))) == count

    def may_have(self, name: str) -> float:
        """How many workers the job may have at most. One that runs without the label of its queue asks for no more."""
        admitted = None if self.has_queue(name) else self.admitted_workers(name)
        return inf if admitted is None else admitted

    def is_worker_of(self, pod: Manifest, name: str) -> bool:
        """Whether the pod is one of this job's workers."""
        facts = self.world.cluster.facts[pod["metadata"]["uid"]]
        return facts.job_uid == self.uid(name) and facts.task.startswith("worker-")
