# SPDX-License-Identifier: Apache-2.0
"""What people and other programs do: they delete and apply, edit labels and policies, set quotas, take names."""

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.job import KIND, Job
from dtjob.api.status.status import Status
from dtjob.objects import gangs, labels, topology
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.life.pods import Pods
from tests.unit.operator.simulation.life.stage import NAMES, jobs

SHARED = ("Service", "ConfigMap", "NetworkPolicy")
FOUND_BY = (labels.JOB_NAME, labels.ROLE, labels.INDEX, labels.ATTEMPT)


class People(Pods):
    """Users, strangers and administrators."""

    def __init__(self) -> None:
        super().__init__()
        self._uids = itertools.count(1)
        self.stripped: dict[str, dict[str, str]] = {}
        """Labels that somebody took from pods, by uid."""

    # Jobs come and go

    @precondition(lambda self: len(self.names) < len(NAMES))
    @rule(data=st.data())
    def another_job_is_applied(self, data: st.DataObject) -> None:
        absent = next(name for name in NAMES if name not in self.names)
        self.world.apply(data.draw(jobs(name=absent, uid=f"job-{next(self._uids)}")))

    @precondition(lambda self: self.names and not all(self.goes_on(name) for name in self.names))
    @rule(data=st.data())
    def ended_job_makes_room_for_another(self, data: st.DataObject) -> None:
        name = next(name for name in self.names if not self.goes_on(name))
        self.make_room(data.draw(jobs(name=name, uid=f"job-{next(self._uids)}")))

    def make_room(self, job: Job) -> None:
        """The ended job of this name goes with all that it has left, unless it is gone, and this one runs at once."""
        name, objects = job.metadata.name, self.world.cluster.objects
        gone = {labels.controller_uid(objects[key]) for key in self.orphans()}
        if name in self.names:
            gone.add(self.uid(name))
            self.world.cluster.remove(KIND, name)
        for (kind, child), one in list(objects.items()):
            if kind != KIND and labels.controller_uid(one) in gone:
                self.world.cluster.remove(kind, child)
        self.world.apply(job)
        self.world.run(1)
        self.all_run()
        self.world.run(1)

    @precondition(lambda self: self.names)
    @rule(data=st.data(), same=st.booleans(), collected=st.sampled_from((True, True, False)), moved=st.booleans())
    def is_deleted_and_applied_again(self, data: st.DataObject, same: bool, collected: bool, moved: bool) -> None:
        """Its objects are collected soon, and its pods have their grace period. Its chief may have moved before."""
        name = data.draw(st.sampled_from(self.names))
        if moved:
            self.disrupt_chief(name)
        if name not in self.names:
            return  # it had ended, and its time to live was over meanwhile
        uid = f"job-{next(self._uids)}"
        job = self.world.job_named(name) if same else data.draw(jobs(name=name, uid=uid))
        metadata = job.metadata.model_copy(update={"uid": uid, "resource_version": "", "generation": 1})
        self.world.cluster.remove(KIND, name)
        if collected:
            self.garbage_is_collected()
        self.world.apply(job.model_copy(update={"metadata": metadata, "status": {}}))
        self.world.run(1)

    def disrupt_chief(self, name: str) -> None:
        """The chief is preempted, and all pods of this time run again."""
        for pod in self.answering():
            if self.facts(pod).job_uid == self.uid(name) and self.facts(pod).task in ("chief-0", "worker-0"):
                self.set_status(pod, builders.disrupted("PreemptionByScheduler", self.world.node_time()))
                break
        self.world.run(self.longest_wait() + 3)
        self.all_run()
        self.world.run(1)

    @precondition(lambda self: self.orphans())
    @rule()
    def garbage_is_collected(self) -> None:
        for kind, name in self.orphans():
            self.world.cluster.ask_to_delete(kind, name)

    def orphans(self) -> list[tuple[str, str]]:
        """Kind and name of what deleted jobs have left."""
        objects = self.world.cluster.objects.items()
        there = {None, *(one["metadata"]["uid"] for one in self.world.cluster.of_kind(KIND))}
        return [key for key, one in objects if labels.controller_uid(one) not in there]

    # Edits

    @precondition(lambda self: self.pods())
    @rule(data=st.data(), label=st.sampled_from(FOUND_BY))
    def label_is_taken_away(self, data: st.DataObject, label: str) -> None:
        self.take_label(data.draw(st.sampled_from(self.pods())), label)

    def take_label(self, name: str, label: str) -> None:
        """kubectl label pod NAME LABEL-."""
        one = self.world.pods[name]
        if label not in labels.of(one):
            return
        self.world.cluster.rules.tampered.add(one["metadata"]["uid"])
        self.stripped.setdefault(one["metadata"]["uid"], {})[label] = labels.of(one)[label]
        self.world.cluster.change("Pod", name, lambda one: one["metadata"]["labels"].pop(label))

    @precondition(lambda self: self.stripped)
    @rule()
    def labels_are_put_back(self) -> None:
        for (kind, name), one in self.world.cluster.objects.items():
            if taken := self.stripped.pop(one["metadata"]["uid"], None):
                self.world.cluster.change(kind, name, lambda one, taken=taken: one["metadata"]["labels"].update(taken))

    @precondition(lambda self: self.names)
    @rule(data=st.data(), restarts=st.integers(0, 4))
    def max_restarts_is_changed(self, data: st.DataObject, restarts: int) -> None:
        self.set_max_restarts(data.draw(st.sampled_from(self.names)), restarts)

    def set_max_restarts(self, name: str, restarts: int) -> None:
        """kubectl edit."""

        def change(job: Manifest) -> None:
            job["spec"]["failurePolicy"]["maxRestartsWithoutProgress"] = restarts
            job["metadata"]["generation"] += 1

        self.world.cluster.change(KIND, name, change)

    @precondition(lambda self: self.names)
    @rule(data=st.data())
    def somebody_touches_the_job(self, data: st.DataObject) -> None:
        """Its resourceVersion moves, so that the next status write may be a stale one."""
        name = data.draw(st.sampled_from(self.names))
        self.world.cluster.change(KIND, name, lambda one: one["metadata"].update(annotations={"touched": "yes"}))

    @precondition(lambda self: self.restarted())
    @rule(data=st.data())
    def newer_operator_was_here(self, data: st.DataObject) -> None:
        """It knew causes, phases and fields that this one does not, and was rolled back."""
        name = data.draw(st.sampled_from(self.restarted()))

        def change(job: Manifest) -> None:
            status = job["status"]
            count = status.get("restarts", {}).get("causes", {})
            cause = status["internal"]["incident"]["cause"]
            if cause in count:
                number = count.pop(cause)
                count["NodeRebooted"] = count.get("NodeRebooted", 0) + number
                for one in status.get("incidents", []):
                    one["reason"] = "NodeRebooted" if one["reason"] == cause else one["reason"]
            status["internal"]["incident"] |= {"cause": "NodeRebooted", "node": "node-1"}
            status |= {"phase": "Rescheduling", "plannedFor": "2026-11-21T10:00:00Z"}

        self.world.cluster.change(KIND, name, change)
        self.world.restart()

    def restarted(self) -> list[str]:
        """The jobs that go on after an incident."""
        return [name for name in self.names if self.goes_on(name) and Status.read(self.status(name)).internal.incident]

    # Quotas, and names that are taken

    @rule(pods=st.integers(0, 3), deleted=st.booleans())
    def quota_is_set(self, pods: int, deleted: bool) -> None:
        """It lets what is there be; an administrator may have made room for it."""
        self.world.cluster.quota = pods
        if deleted:
            for name in self.pods():
                self.world.cluster.ask_to_delete("Pod", name)
            self.kubelets_end_what_is_deleted()

    @precondition(lambda self: self.world.cluster.quota is not None)
    @rule()
    def quota_is_lifted(self) -> None:
        self.world.cluster.quota = None

    @precondition(lambda self: self.names)
    @rule(data=st.data(), times=st.integers(2, 6))
    def much_happens_in_a_short_while(self, data: st.DataObject, times: int) -> None:
        """Watch events that change nothing that matters."""
        name = data.draw(st.sampled_from(self.names))
        for number in range(times):
            if name in self.names:  # it may be over, and have no longer to live
                self.world.cluster.change(
                    KIND, name, lambda one, n=number: one["metadata"].update(annotations={"n": str(n)})
                )
            self.world.run(0.3)

    @rule(kind=st.sampled_from((*SHARED, *gangs.PROVIDERS)))
    def user_deletes_shared_objects(self, kind: str) -> None:
        for one in self.world.cluster.of_kind(kind):
            self.world.cluster.remove(kind, one["metadata"]["name"])

    @precondition(lambda self: self.names)
    @rule(data=st.data(), attempt=st.integers(0, 1))
    def stranger_takes_a_name(self, data: st.DataObject, attempt: int) -> None:
        job = self.world.job_named(data.draw(st.sampled_from(self.names)))
        name = topology.pod_name(job, data.draw(st.sampled_from(topology.tasks(job))), attempt)
        if name not in self.world.pods:
            self.world.cluster.put(builders.stranger("Pod", name, job.metadata.name))

    @precondition(lambda self: self.strangers())
    @rule()
    def strangers_leave(self) -> None:
        for name in self.strangers():
            self.world.cluster.remove("Pod", name)

    def strangers(self) -> list[str]:
        """Names of pods that nobody controls."""
        return [name for name, one in self.world.pods.items() if labels.controller_uid(one) is None]
