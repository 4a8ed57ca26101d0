# SPDX-License-Identifier: Apache-2.0
"""How every life must end: what was broken is repaired, and then each job runs or has ended, and asks for no more."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtjob.api.job import KIND, Job
from dtjob.api.phase import ENDED, Phase
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.status import Status
from dtjob.objects import labels, topology
from dtjob.plan.record.status import EVALUATION_GIVEN_UP, holds
from dtjob.plan.seen.children import ended as has_ended
from tests.unit.operator import builders
from tests.unit.operator.simulation.facts import attempt_of, has_finished, told_to_end
from tests.unit.operator.simulation.life.deadlines import Deadlines
from tests.unit.operator.simulation.life.people import SHARED
from tests.unit.operator.simulation.life.programs import Programs
from tests.unit.operator.simulation.life.stage import MAY_FAIL_ALONE
from tests.unit.operator.simulation.life.supervisors import HOSTILE
from tests.unit.operator.simulation.ruling import FAIL_2, UNCOUNTED_127

WATCHED = {"Service", "NetworkPolicy"}
"""The shared objects that are made again at once."""


@dataclass(frozen=True)
class Ending:
    """What becomes of the jobs at last: what is done to each by its name, and the jobs to which that can happen."""

    name: str
    act: Callable[[Any, str], None]
    suited: dict[str, Any] = field(default_factory=dict)


class Endings(Deadlines, Programs):
    """Everything converges."""

    ending = Ending("runs on", lambda life, name: None)
    last_job: Job
    """It is as such an end needs it, and comes last."""

    def converge(self) -> None:
        """Repair the world, let each job settle, end it as was chosen, and see that it asks for nothing more."""
        self.repair()
        self.settle()
        self.end_all()
        self.make_room(self.last_job)
        self.end_all()
        self.check_charges()
        self.check_quota_is_given_back()
        self.check_rest()

    def check_rest(self) -> None:
        """Nothing happens any more, and nothing is asked for."""
        cluster = self.world.cluster
        self.check_metrics()
        self.world.run(200)  # then pods of ended jobs that did not end by themselves are deleted
        self.kubelets_end_what_is_deleted()
        self.world.run(10)
        calls, versions = len(cluster.calls), self.versions()
        self.world.run(3600)
        assert cluster.calls[calls:] == [], "a settled job still asks for something"
        assert self.versions() == versions

    def check_metrics(self) -> None:
        """restarts-are-metered: The metrics count the restarts that the statuses count."""
        rules, counted = self.world.cluster.rules, self.world.meters.restarts()
        written = +(rules.restarts_written - rules.restarts_untold)
        assert +counted == written, f"the metrics count {counted} of {written}"
        self.world.meters.check_gauges(self.world.cluster.of_kind(KIND))

    def end_all(self) -> None:
        """What was chosen happens to each job that goes on."""
        for name in self.names:
            if self.goes_on(name):
                self.ending.act(self, name)
        self.repair()
        self.settle()

    def repair(self) -> None:
        """Nothing is broken any more, and nobody interferes."""
        cluster = self.world.cluster
        self.garbage_is_collected()
        self.strangers_leave()
        self.labels_are_put_back()
        cluster.lost.clear()
        cluster.refusing.clear()
        cluster.crash_in = cluster.fail_next = cluster.quota = cluster.webhook = None
        self.deadlines_are_lifted()
        self.all_go_on()
        self.world.kueue.opens()
        self.world.watch_again()
        self.world.resync()

    def settle(self) -> None:
        """Wait until every job runs or has ended."""
        for _ in range(14):
            self.kubelets_end_what_is_deleted()
            self.there_is_room()
            self.world.run(1)
            self.all_run()
            self.evaluators_finish()
            self.world.run(1)
            if all(self.settled(name) for name in self.names):
                break
            self.world.run(910)
        self.check_evaluators_are_beside_their_chiefs()
        pods = [(name, one.get("status")) for name, one in self.world.pods.items()]
        for name in self.names:
            assert self.settled(name), f"{name} does not settle: {self.status(name)} with {pods}"

    def settled(self, name: str) -> bool:
        """Whether the job has ended and has nothing left to evaluate. Of one that goes on, whether every task that has
        not finished has the pod of its attempt, and no other."""
        job, finished = self.world.job_named(name), set(self.world.cluster.plan_rules.finished.get(self.uid(name), {}))
        if job.status.get("phase") in ENDED:
            return not self.has_to_evaluate(job)
        said = set(Status.read(job.status).internal.finished)
        # While no pod of the task runs, nobody knows better than a forged status.
        forged = self.uid(name) in self.world.cluster.rules.forged
        believed = said if forged else set()
        finished |= believed
        workers = job.status.get("workers") or {}
        desired, replicas = workers.get("desired"), workers.get("replicas")
        as_admitted = replicas == self.admitted_workers(name) and (replicas or 0) <= (desired or 0)
        if replicas != desired and not as_admitted and not said:
            return False  # where a task has finished, none is made for another number any more
        ignored = holds(Status.read(job.status).conditions, EVALUATION_GIVEN_UP)
        needed = [one for one in topology.tasks(job) if not (ignored and one.role is Role.EVALUATOR)]
        tasks = [(one.id, attempt_of(job.status, one.id)) for one in needed]
        wanted = {f"{name}-{id_}-{attempt}" for id_, attempt in tasks}
        may_be_gone = {f"{name}-{id_}-{attempt}" for id_, attempt in tasks if id_ in finished}
        there = set(self.pods(lambda one: labels.controller_uid(one) == job.metadata.uid))
        there -= {pod for pod in there if ignored and self.facts(pod).task == "evaluator-0"}
        if forged:  # attempts may have begun anew beside a pod without labels, which has ended since
            there -= {pod for pod in there - wanted if has_ended(self.world.pods[pod])}
        seen = [(self.world.pods[pod], self.facts(pod)) for pod in there if self.facts(pod).task not in believed]
        if any(has_ended(pod) and not has_finished(pod, facts) for pod, facts in seen):
            return False
        owned = [one for kind in SHARED for one in self.world.cluster.of_kind(kind)]
        shared = [one for one in owned if labels.controller_uid(one) == job.metadata.uid]
        # A ConfigMap that was deleted is made again once a pod needs it.
        complete = wanted - may_be_gone <= there <= wanted and {one["kind"] for one in shared} >= WATCHED
        return complete and job.status.get("phase") == "Running"

    def has_to_evaluate(self, job: Job) -> bool:
        """Whether training has succeeded, and the evaluator has neither finished nor been given up. It may wait for its
        next pod as long as during training."""
        status = Status.read(job.status)
        evaluator = job.spec.replica_specs.evaluator
        if status.phase is not Phase.SUCCEEDED or evaluator is None or job.spec.program is None:
            return False
        finished = status.internal.finished.get("evaluator-0") == attempt_of(job.status, "evaluator-0")
        return not finished and not holds(status.conditions, EVALUATION_GIVEN_UP)

    def be_replaced_under_refusals(self, name: str) -> None:
        """It has something to repair, and its workers something to ask their queue for."""
        self.world.kueue.open = False
        for call in MAY_FAIL_ALONE:
            self.refuse(call, down=False)
        self.world.cluster.change("Service", name, lambda one: one["spec"].update(ports=[]))
        if name in self.elastic() and self.admitted_workers(name) is not None:
            self.scale(name, 4)
        self.world.run(1)
        if not (chief := self.chief_of(name)) or not self.goes_on(name):
            return
        self.set_status(chief, builders.disrupted("PreemptionByScheduler", self.world.node_time()))
        self.world.run(3)
        self.world.run(self.longest_wait())
        assert self.chief_of(name) not in (None, chief), f"{chief} has no successor: {self.status(name)}"

    def lose_survivors(self, name: str) -> None:
        """Twice, and each time all have run before for long enough for it to be another incident."""
        for _ in range(2):
            self.world.run(60)
            mine = [pod for pod in self.answering() if self.facts(pod).job_uid == self.uid(name)]
            if not (servers := [pod for pod in mine if self.facts(pod).task.startswith("ps-")]):
                return
            self.blame(servers[0], "Error")
            self.set_status(servers[0], builders.ended(1, self.world.node_time()))
            self.world.run(3)
            while left := [pod for pod in self.survivors() if self.facts(pod).job_name == name]:
                self.fail_as_survivor(left[0])
                self.world.run(45)
            self.world.run(self.longest_wait())
            self.all_run()

    def finish_while_drained(self, name: str) -> None:
        """Training ends within the grace period, unless a webhook has left none."""
        if chief := self.chief_of(name):
            self.drain(chief)
            self.world.run(1)
            if chief in self.world.pods:
                self.finish(chief)
            self.world.run(1)

    def fail_chief_in_init(self, name: str) -> None:
        """Its status tells what it died of."""
        if chief := self.chief_of(name):
            self.fail_in_init(chief)
            self.world.run(3)

    def collect_a_finished_worker(self, name: str) -> None:
        """The others train on."""
        chief = topology.chief_task(self.world.job_named(name)).id
        workers = [pod for pod in self.grouped() if self.facts(pod).job_name == name and self.facts(pod).task != chief]
        if workers:
            self.finish(workers[0])
            self.world.run(1)
            self.world.cluster.remove("Pod", workers[0])
            self.world.run(60)

    def tell(self, name: str, more: dict[str, Any]) -> None:
        """The supervisors tell this beside their steps, and the chief is preempted."""
        self.ask("", more, 10, True)
        self.world.run(11)
        self.disrupt_chief(name)

    def preempt_again_and_again(self, name: str) -> None:
        """It runs for a minute each time."""
        for _ in range(4):
            self.disrupt_chief(name)
            self.world.run(60)

    def strike(self, name: str, what: str) -> None:
        """The last of the tasks that train together is struck."""
        group = [pod for pod in self.grouped() if self.facts(pod).job_name == name]
        if len(group) > 1:
            self.peers_die(group[-1], what, 0.5, 30)

    def strip(self, name: str) -> None:
        """Somebody takes the label by which the operator finds the chief's pod."""
        if chief := self.chief_of(name):
            self.take_label(chief, labels.JOB_NAME)
            self.world.run(60)

    def strip_workload(self, name: str) -> None:
        """It runs on. Then it happens again, and its chief finishes before that is heard of."""
        workload = (self.status(name).get("queue") or {}).get("workload", "")
        if workload not in self.world.kueue.in_force():
            return
        self.take_workloads_label(workload)
        self.world.run(1)
        assert self.status(name)["phase"] == "Running"
        self.world.run(70)
        found = self.world.kueue.workload(workload)
        if found is None or not self.goes_on(name):
            return
        assert self.status(name)["phase"] == "Running"
        if chief := self.chief_of(name):
            self.take_workloads_label(workload)
            self.finish(chief)
            self.world.run(1)

    def succeed(self, name: str, evicted: bool) -> None:
        """The chief finishes; its evaluator is evicted just then, or still waits for its image."""
        evaluator = f"{name}-evaluator-0-{attempt_of(self.status(name), 'evaluator-0')}"
        away = evaluator in self.answering()
        gone = builders.disrupted("EvictionByEvictionAPI", self.world.node_time())
        if away:
            self.set_status(evaluator, gone if evicted else builders.waiting("ContainerCreating"))
        if chief := self.chief_of(name):
            supervised = self.facts(chief).supervised
            self.finish(chief)
            self.world.run(1)
            self.settle()
            job = self.world.job_named(name)
            done = self.evaluated(job.metadata.uid)
            ignored = any(rule.action is RuleAction.LEAVE_FAILED for rule in job.spec.failure_policy.rules)
            wanted = away and supervised and not ignored and job.status.get("phase") == "Succeeded"
            assert done or not wanted, "the last checkpoint is never evaluated"

    def evaluators_finish(self) -> None:
        """Once the run has succeeded, a supervised evaluator looks at the last checkpoint and ends with 0."""
        self.world.run(1)
        for name in self.names:
            uid = self.uid(name)
            if self.status(name).get("phase") == "Succeeded":
                for pod in self.pods(lambda one, uid=uid: labels.controller_uid(one) == uid and not told_to_end(one)):
                    facts = self.facts(pod)
                    if facts.task == "evaluator-0" and facts.supervised and not has_ended(self.world.pods[pod]):
                        self.finish(pod)
                        self.done.add(uid)

    def evaluated(self, uid: str) -> bool:
        """Whether the job's evaluator has seen what the finished run left."""
        return uid in self.done

    def __init__(self) -> None:
        super().__init__()
        self.done: set[str] = set()

    # What must hold then

    def check_charges(self) -> None:
        """Now all evidence is there."""
        accounts = self.world.cluster.rules.accounts
        for name in self.names:
            if self.goes_on(name) or self.uid(name) not in accounts.unseen:
                accounts.check_charges(self.uid(name), self.status(name))

    def check_evaluators_are_beside_their_chiefs(self) -> None:
        """What one asks the scheduler for is a pod that is there, else it would be Pending for ever."""
        for name in self.pods(lambda one: one["spec"].get("affinity") and not has_ended(one)):
            facts, affinity = self.facts(name), self.world.pods[name]["spec"]["affinity"]
            if self.goes_on(facts.job_name) and "deletionTimestamp" not in self.world.pods[name]["metadata"]:
                (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                wanted = term["labelSelector"]["matchLabels"].items()
                assert any(wanted <= labels.of(other).items() for other in self.world.pods.values())

    def versions(self) -> list[str]:
        """Of every job: it moves with each write of its status."""
        return [one["metadata"]["resourceVersion"] for one in self.world.cluster.of_kind(KIND)]


MIRRORED, SERVERS = {"strategy": "MultiWorkerMirrored"}, {"strategy": "ParameterServer"}
PROGRAM, OTHER_IMAGE, QUEUED, ELASTIC = {"program": True}, {"program": False}, {"queued": True}, {"elastic": True}
EVALUATED = {**PROGRAM, "evaluator": True}
ENDINGS = (
    Endings.ending,
    Ending("succeeds while the evaluator is evicted", lambda life, name: life.succeed(name, True), EVALUATED),
    Ending("succeeds while the evaluator waits for its image", lambda life, name: life.succeed(name, False), EVALUATED),
    Ending("its chief finishes while its node is drained", Endings.finish_while_drained, PROGRAM),
    Ending("a finished worker's pod is collected", Endings.collect_a_finished_worker, {**MIRRORED, **OTHER_IMAGE}),
    Ending("its chief reports a confusion matrix", lambda life, name: life.tell(name, HOSTILE[0]), PROGRAM),
    Ending("its checkpoint is lost", lambda life, name: life.tell(name, {}), {**PROGRAM, "volume": {"emptyDir": {}}}),
    Ending("its chief's init container runs out of memory", Endings.fail_chief_in_init),
    Ending("its chief is preempted every minute", Endings.preempt_again_and_again),
    Ending("its peers die with a drained pod", lambda life, name: life.strike(name, "drained"), MIRRORED | OTHER_IMAGE),
    Ending("its peers die with a lost pod", lambda life, name: life.strike(name, "lost"), MIRRORED | OTHER_IMAGE),
    Ending("its chief's pod loses a label", Endings.strip),
    Ending("its budget is lowered below what is charged, and its chief preempted", Endings.lower_budget),
    Ending("its chief exceeds its own limit at every start", Endings.exceed_the_limit_again_and_again),
    Ending("it is suspended, and goes on", Endings.be_suspended),
    Ending("its queue evicts it, and admits it again", Endings.evict_and_admit, QUEUED),
    Ending("its Workload loses a label", Endings.strip_workload, QUEUED),
    Ending("it is active for longer than its deadline", Endings.outlive_its_deadline),
    Ending("its workers are scaled", Endings.be_scaled, MIRRORED | ELASTIC),
    Ending("its program fails twice alike before its first step", Endings.fail_alike, PROGRAM),
    Ending("its program has done a step, and then fails alike", Endings.fail_after_a_step, PROGRAM),
    Ending("its program fails for good, after another failure", Endings.fail_for_good, PROGRAM),
    Ending("all that may fail alone is refused", Endings.be_replaced_under_refusals, MIRRORED | QUEUED | ELASTIC),
    Ending("its ps fails, and its workers one by one", Endings.lose_survivors, SERVERS | OTHER_IMAGE),
    Ending("its chief is preempted by a clock that is ahead", Endings.fail_by_a_wrong_clock),
    Ending("its status says that all have finished, and they train on", Endings.finish_by_forgery),
    Ending("its chief ends with a code over which a rule ends it", Endings.fail_by_rule, {"rules": [FAIL_2]}),
    Ending("its chief ends with a code that a rule does not count", Endings.fail_uncounted, {"rules": [UNCOUNTED_127]}),
)
