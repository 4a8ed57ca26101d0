# SPDX-License-Identifier: Apache-2.0
"""What happens to pods: they run, fail, finish, are evicted, deleted and collected, and their nodes are lost."""

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.status.status import Status
from dtjob.plan.failure.budget import WINDOW
from dtjob.plan.record.status import with_bounded_wait
from dtjob.plan.seen.children import ended as has_ended
from dtjob.plan.seen.children import facts_of
from tests.unit.operator import builders
from tests.unit.operator.simulation.facts import attempt_of
from tests.unit.operator.simulation.life.stage import Stage

own_failures = st.one_of(
    st.builds(lambda code: {"code": code}, st.sampled_from((1, 2, 76, 127, 255))),
    st.builds(lambda n: {"code": 128 + n, "signal": n}, st.sampled_from((6, 9, 11))),
    st.just({"code": 137, "reason": "OOMKilled"}),
)
NODE_PRESSURE = {
    **builders.evicted("Evicted"),
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
}
disruptions = st.sampled_from(
    [
        builders.disrupted("PreemptionByScheduler"),
        builders.disrupted("EvictionByEvictionAPI"),
        NODE_PRESSURE,
        builders.evicted("NodeShutdown"),
        builders.evicted("Terminated"),
        builders.rejected("OutOfcpu"),
        builders.rejected("UnexpectedAdmissionError"),
        builders.rejected("NodeAffinity"),
    ]
)
own_limits = st.sampled_from(
    (
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
        'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". ',
        'Container tensorflow exceeded its local ephemeral storage limit "1Gi". ',
    )
)
DRAINED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


def beyond_its_limit(message: str) -> dict[str, Any]:
    """The kubelet evicted the pod since it uses more local storage than its own manifest allows."""
    return {"phase": "Failed", "reason": "Evicted", "message": message}


class Pods(Stage):
    """What kubelets, nodes, schedulers and drains do."""

    @precondition(lambda self: self.waiting())
    @rule()
    def all_pods_run(self) -> None:
        self.all_run()

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def one_runs(self, data: st.DataObject) -> None:
        self.set_status(data.draw(st.sampled_from(self.waiting())), builders.running())

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), reason=st.sampled_from(("ErrImagePull", "ImagePullBackOff")))
    def cannot_start(self, data: st.DataObject, reason: str) -> None:
        name = data.draw(st.sampled_from(self.waiting()))
        self.set_status(name, builders.waiting(reason, "no such image"))

    @precondition(lambda self: self.answering())
    @rule(data=st.data(), how=own_failures, sidecar=st.booleans())
    def fails(self, data: st.DataObject, how: dict[str, Any], sidecar: bool) -> None:
        name = data.draw(st.sampled_from(self.answering()))
        more = dict(how)
        status = builders.ended(more.pop("code"), self.world.node_time(), **more)
        if sidecar:
            status["phase"] = "Running"
        self.blame(name, "OOMKilled" if "reason" in more else "Signal" if "signal" in more else "Error")
        self.set_status(name, status)

    @precondition(lambda self: self.answering())
    @rule(data=st.data())
    def init_container_runs_out_of_memory(self, data: st.DataObject) -> None:
        self.fail_in_init(data.draw(st.sampled_from(self.answering())))

    def fail_in_init(self, name: str) -> None:
        """The pod's training container never starts."""
        end = {"exitCode": 137, "signal": 9, "reason": "OOMKilled"}
        status = {
            "phase": "Failed",
            "initContainerStatuses": [{"name": "fetch", "state": {"terminated": end}}],
            "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}}],
        }
        self.blame(name, "OOMKilled")
        self.set_status(name, status)

    @precondition(lambda self: self.answering())
    @rule(data=st.data(), message=own_limits)
    def exceeds_its_own_limit(self, data: st.DataObject, message: str) -> None:
        name = data.draw(st.sampled_from(self.answering()))
        self.blame(name, None)
        self.set_status(name, beyond_its_limit(message))

    def blame(self, pod: str, cause: str | None) -> None:
        """The job has done this itself; `cause` where the status is to say it in this word."""
        facts, accounts = self.facts(pod), self.world.cluster.rules.accounts
        if facts.task != "evaluator-0":
            accounts.own[facts.job_uid] += 1
        if cause:
            accounts.causes[self.world.pods[pod]["metadata"]["uid"]] = cause

    @precondition(lambda self: self.answering())
    @rule(data=st.data())
    def finishes(self, data: st.DataObject) -> None:
        """It has done its part; a supervisor leaves its last status behind."""
        self.finish(data.draw(st.sampled_from(self.answering())))

    def finish(self, name: str) -> None:
        """End with 0."""
        facts = self.facts(name)
        last = {"task": facts.task, "jobUid": facts.job_uid, "state": "finished", "step": 100}
        message = {"message": json.dumps(last)} if facts.supervised else {}
        self.set_status(name, builders.ended(0, self.world.node_time(), **message))

    @precondition(lambda self: self.answering())
    @rule(data=st.data(), status=disruptions)
    def is_disrupted(self, data: st.DataObject, status: dict[str, Any]) -> None:
        self.set_status(data.draw(st.sampled_from(self.answering())), status)

    @precondition(lambda self: self.answering())
    @rule(data=st.data())
    def is_drained(self, data: st.DataObject) -> None:
        self.drain(data.draw(st.sampled_from(self.answering())))

    def drain(self, name: str) -> None:
        """The eviction API marks the pod and deletes it, with its grace period."""
        if "running" in str(self.world.pods[name].get("status")):
            self.world.cluster.change("Pod", name, lambda one: one["status"].update(conditions=[dict(DRAINED)]))
        self.world.cluster.ask_to_delete("Pod", name)

    @precondition(lambda self: self.pods())
    @rule(data=st.data(), by_force=st.booleans())
    def user_deletes(self, data: st.DataObject, by_force: bool) -> None:
        name = data.draw(st.sampled_from(self.pods()))
        if by_force:
            self.world.cluster.remove("Pod", name)
        else:
            self.world.cluster.ask_to_delete("Pod", name)

    @precondition(lambda self: self.pods(lambda pod: facts_of(pod).is_terminal))
    @rule(data=st.data())
    def ended_pod_is_collected(self, data: st.DataObject) -> None:
        """By Kubernetes' pod garbage collector, or since its node is drained."""
        self.world.cluster.remove("Pod", data.draw(st.sampled_from(self.pods(lambda pod: facts_of(pod).is_terminal))))

    @precondition(lambda self: self.answering())
    @rule(data=st.data())
    def node_is_lost(self, data: st.DataObject) -> None:
        """The pod is told to go and never will: its kubelet does not answer."""
        name = data.draw(st.sampled_from(self.answering()))
        self.world.cluster.lost.add(self.world.pods[name]["metadata"]["uid"])
        if (self.world.pods[name].get("status") or {}).get("containerStatuses"):
            self.world.cluster.ask_to_delete("Pod", name)

    @precondition(lambda self: self.leaving())
    @rule(data=st.data(), code=st.sampled_from((0, 1, 143)))
    def ends_on_being_told_to(self, data: st.DataObject, code: int) -> None:
        """Before its grace period is over. A supervised program that exits 0 had finished."""
        name = data.draw(st.sampled_from(self.leaving()))
        if code == 0 and self.facts(name).supervised:
            self.finish(name)
        else:
            self.set_status(name, builders.ended(code, self.world.node_time()))

    def deleted(self) -> list[str]:
        """Pods that are told to end."""
        return self.pods(lambda one: "deletionTimestamp" in one["metadata"])

    def leaving(self) -> list[str]:
        """Pods that are told to end and have not yet."""
        return [name for name in self.answering() if "deletionTimestamp" in self.world.pods[name]["metadata"]]

    @precondition(lambda self: self.deleted())
    @rule()
    def kubelets_end_what_is_deleted(self) -> None:
        for name in self.deleted():
            if self.world.pods[name]["metadata"]["uid"] not in self.world.cluster.lost:
                if not has_ended(self.world.pods[name]):
                    self.set_status(name, builders.ended(143, self.world.node_time()))
                self.world.cluster.remove("Pod", name)

    @precondition(lambda self: self.answering())
    @rule(data=st.data(), own=st.booleans(), ran=st.sampled_from((1.0, 60.0, 310.0)), often=st.integers(1, 3))
    def one_dies_and_all_come_back(self, data: st.DataObject, own: bool, ran: float, often: int) -> None:
        """Once or a few times in a row, each time after they ran for so many seconds."""
        for _ in range(often):
            self.world.run(ran)
            if names := [name for name in self.answering() if self.goes_on(self.facts(name).job_name)]:
                name = data.draw(st.sampled_from(names))
                if own:
                    self.blame(name, "Error")
                    self.set_status(name, builders.ended(1, self.world.node_time()))
                else:
                    self.set_status(name, data.draw(disruptions))
            self.world.run(3)
            self.kubelets_end_what_is_deleted()
            self.world.run(self.longest_wait())
            self.all_run()

    def longest_wait(self) -> float:
        """Seconds until every job may start its pods again. A longer wait than its backoff allows was forged."""
        waits = [1.0]
        for name in self.names:
            backoff = self.world.job_named(name).spec.failure_policy.backoff
            incident = with_bounded_wait(Status.read(self.status(name)), backoff).internal.incident
            if incident:
                waits.append((incident.not_before - self.world.now()).total_seconds() + 1)
        return max(waits)

    # Without a supervisor, all that train together die with the first of them.

    def grouped(self) -> list[str]:
        """Running pods of jobs without a supervisor whose tasks cannot go on without each other. Not those that have a
        successor: nobody trains with them any more."""
        found = []
        for name in self.pods(lambda one: "running" in str(one.get("status"))):
            facts = self.facts(name)
            one_group = self.goes_on(facts.job_name) and self.uid(facts.job_name) == facts.job_uid
            if one_group and not facts.supervised and facts.task != "evaluator-0" and name in self.answering():
                current = facts.attempt == attempt_of(self.status(facts.job_name), facts.task)
                multi = self.world.job_named(facts.job_name).spec.strategy.value == "MultiWorkerMirrored"
                found += [name] if multi and current else []
        return found

    @precondition(lambda self: len(self.grouped()) > 1)
    @rule(
        data=st.data(),
        what=st.sampled_from(("drained", "deleted", "lost")),
        noticed=st.sampled_from((0.0, 0.5, 3.0, 12.0)),
        shows=st.sampled_from((5.0, 45.0)),
    )
    def peers_die_with_a_disrupted_pod(self, data: st.DataObject, what: str, noticed: float, shows: float) -> None:
        """That a node is lost shows only after its peers have noticed; a drain and a deletion show at once."""
        self.peers_die(data.draw(st.sampled_from(self.grouped())), what, noticed, shows)

    # Where nobody is the chief, workers of ParameterServer fail with a ps, each at a time of its own.

    def survivors(self) -> list[str]:
        """Running pods of workers that a lost ps has outlived, of jobs without a supervisor that wait for the next
        start."""
        found = []
        for name in self.names:
            incident, job = Status.read(self.status(name)).internal.incident, self.world.job_named(name)
            if incident is None or self.world.now() >= incident.not_before or job.spec.program is not None:
                continue
            if job.spec.strategy.value != "ParameterServer" or self.status(name).get("phase") != "Restarting":
                continue
            for pod in self.answering():
                facts = self.facts(pod)
                current = facts.attempt == attempt_of(job.status, facts.task) <= incident.attempts.of(facts.task)
                mine = facts.job_uid == self.uid(name) and facts.task.startswith("worker-")
                found += [pod] if mine and current and "running" in str(self.world.pods[pod].get("status")) else []
        return found

    @precondition(lambda self: self.survivors())
    @rule(data=st.data(), later=st.sampled_from((1.0, 45.0)))
    def survivor_fails_in_a_backoff(self, data: st.DataObject, later: float) -> None:
        self.fail_as_survivor(data.draw(st.sampled_from(self.survivors())))
        self.world.run(later)

    def fail_as_survivor(self, name: str) -> None:
        """It fails of what became of its peers."""
        self.set_status(name, builders.ended(1, self.world.node_time()))

    def peers_die(self, name: str, what: str, noticed: float, shows: float) -> None:
        """The peers of this pod fail so many seconds after something was done to it; of a lost node, that shows so many
        seconds later. After the window of an incident an eviction does not show the loss; a pod that does not end
        does."""
        facts = self.facts(name)
        peers = [one for one in self.grouped() if one != name and self.facts(one).job_uid == facts.job_uid]
        uid, accounts = self.world.pods[name]["metadata"]["uid"], self.world.cluster.rules.accounts
        if what == "drained":
            self.drain(name)
        elif what == "deleted":
            self.world.cluster.ask_to_delete("Pod", name)
        else:
            self.world.cluster.lost.add(uid)
        if what == "lost" or not self.world.watching:  # without a watch, only a LIST tells of a pod that is gone
            accounts.unseen.add(facts.job_uid)
        self.world.run(noticed or 0.01)
        for one in (peer for peer in self.answering() if peer in peers):
            self.set_status(one, builders.ended(1, self.world.node_time()))
        if what == "lost":
            self.world.run(shows)
            if name in self.pods(lambda one: one["metadata"]["uid"] == uid):
                self.drain(name)
                lost_at = facts_of(self.world.pods[name]).lost_at
                if lost_at is not None and shows > WINDOW.total_seconds():
                    self.world.run((lost_at - self.world.now()).total_seconds())
                self.world.run(5)
            if self.goes_on(facts.job_name) and self.world.watching:
                accounts.unseen.discard(facts.job_uid)
