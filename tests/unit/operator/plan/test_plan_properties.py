"""Any job, any history, a crash anywhere: the real operator over a simulated cluster (`rules.py`: what must not be).

Hypothesis plays user, kubelet, node failures, strangers, the watch and the operator's own crashes. After each history
everything is mended, and the job must come to Running or to its end by itself, waking up only when it said it would.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dtjob.api.job import KIND, Job
from dtjob.api.phase import ENDED
from dtjob.controller.cluster import ClusterError, Refused
from dtjob.objects import drift, labels, shared, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Delete, Plan, StopServing
from dtjob.plan.children import Children
from dtjob.plan.children import ended as has_ended
from dtjob.plan.plan import plan
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.simulation.operator import World

SHARED = ("Service", "ConfigMap", "NetworkPolicy")
NOTHING: Manifest = {"kind": "", "metadata": {}}
CHANGES: dict[str, dict[str, Any]] = {"Service": {"selector": {"a": "b"}}, "NetworkPolicy": {"ingress": [{}]}}
"""What a user may make of a shared object's spec."""
CHIEFS_VOLUME = {"directory": "/checkpoints", "volume": {"persistentVolumeClaim": {"claimName": "digits"}}}
STRATEGIES = ("Default", "Mirrored", "MultiWorkerMirrored", "ParameterServer")


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    strategy = draw(st.sampled_from(STRATEGIES))
    return builders.job(
        strategy,
        workers=draw(st.integers(1, 3)),
        chief=strategy != "MultiWorkerMirrored" or draw(st.booleans()),
        ps=draw(st.integers(1, 2)) if strategy == "ParameterServer" else 0,
        evaluator=draw(st.booleans()),
        program=draw(st.booleans()),
        failurePolicy={"maxRestarts": draw(st.integers(0, 4))},
        runPolicy={"cleanPods": draw(st.sampled_from(("Running", "All", "None")))},
        **draw(st.sampled_from(({}, {"checkpoint": CHIEFS_VOLUME}))),
    )


own_failures = st.one_of(
    st.builds(lambda code: {"code": code}, st.sampled_from((1, 2, 76, 127, 255))),
    st.builds(lambda n: {"code": 128 + n, "signal": n}, st.sampled_from((6, 9, 11))),
    st.just({"code": 137, "reason": "OOMKilled"}),
)
disruptions = st.sampled_from(
    [
        builders.disrupted("PreemptionByScheduler"),
        builders.disrupted("EvictionByEvictionAPI"),
        builders.evicted("Evicted"),
        builders.evicted("NodeShutdown"),
        builders.evicted("Terminated"),
        builders.rejected("OutOfcpu"),
        builders.rejected("UnexpectedAdmissionError"),
        builders.rejected("NodeAffinity"),
    ]
)


class Life(RuleBasedStateMachine):
    """One job's life."""

    world: World

    @initialize(job=jobs(), runs=st.integers(0, 3))
    def apply(self, job: Job, runs: int) -> None:
        """Most histories begin with a job that runs: that is where the most can go wrong."""
        self.world = World(job)
        self.own_failures = 0
        self.stuck: set[str] = set()
        if runs:
            self.world.run(1)
            self.all_run()
            self.world.run(1)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.converge()
            finally:
                self.world.close()

    # What happens to pods

    def pods(self, wanted: Any) -> list[str]:
        return sorted(name for name, one in self.world.pods.items() if labels.controller_uid(one) and wanted(one))

    def alive(self) -> list[str]:
        return self.pods(lambda one: not has_ended(one))

    def set_status(self, name: str, status: dict[str, Any]) -> None:
        self.world.cluster.change("Pod", name, lambda one: one.update(status=deepcopy(status)))

    @rule()
    def all_run(self) -> None:
        for name in self.alive():
            self.set_status(name, builders.running())

    @precondition(lambda self: self.alive())
    @rule(data=st.data())
    def one_runs(self, data: st.DataObject) -> None:
        self.set_status(data.draw(st.sampled_from(self.alive())), builders.running())

    @precondition(lambda self: self.alive())
    @rule(data=st.data(), how=own_failures, sidecar=st.booleans())
    def fails(self, data: st.DataObject, how: dict[str, Any], sidecar: bool) -> None:
        name = data.draw(st.sampled_from(self.alive()))
        more = dict(how)
        status = builders.ended(more.pop("code"), self.world.now(), **more)
        if sidecar:
            status["phase"] = "Running"
        self.set_status(name, status)
        self.own_failures += "evaluator" not in name

    @precondition(lambda self: self.alive())
    @rule(data=st.data())
    def finishes(self, data: st.DataObject) -> None:
        self.set_status(data.draw(st.sampled_from(self.alive())), builders.ended(0, self.world.now()))

    @precondition(lambda self: self.alive())
    @rule(data=st.data(), status=disruptions)
    def is_disrupted(self, data: st.DataObject, status: dict[str, Any]) -> None:
        self.set_status(data.draw(st.sampled_from(self.alive())), status)

    @precondition(lambda self: self.pods(lambda one: True))
    @rule(data=st.data())
    def user_deletes(self, data: st.DataObject) -> None:
        self.world.cluster.ask_to_delete("Pod", data.draw(st.sampled_from(self.pods(lambda one: True))))

    @precondition(lambda self: self.pods(lambda one: True))
    @rule(data=st.data())
    def user_deletes_by_force(self, data: st.DataObject) -> None:
        self.world.cluster.remove("Pod", data.draw(st.sampled_from(self.pods(lambda one: True))))

    @precondition(lambda self: self.alive())
    @rule(data=st.data())
    def node_is_lost(self, data: st.DataObject) -> None:
        """The pod is told to go and never will: its kubelet does not answer."""
        name = data.draw(st.sampled_from(self.alive()))
        self.stuck.add(name)
        if (self.world.pods[name].get("status") or {}).get("containerStatuses"):
            self.world.cluster.ask_to_delete("Pod", name)

    @rule()
    def kubelets_end_what_is_deleted(self) -> None:
        for name in self.pods(lambda one: "deletionTimestamp" in one["metadata"]):
            if name not in self.stuck:
                if not has_ended(self.world.pods[name]):
                    self.set_status(name, builders.ended(143, self.world.now()))
                self.world.cluster.remove("Pod", name)

    # What happens to the rest

    @rule(kind=st.sampled_from(sorted(CHANGES)), unlabels=st.booleans())
    def user_changes_shared_object(self, kind: str, unlabels: bool) -> None:
        found = [one for one in self.world.cluster.of_kind(kind) if labels.controller_uid(one)]
        for name in [one["metadata"]["name"] for one in found]:
            self.world.cluster.change(kind, name, lambda one: one["spec"].update(CHANGES[kind]))
            if unlabels:
                self.world.cluster.take_label_away(kind, name, labels.JOB_NAME)

    @rule(kind=st.sampled_from(SHARED))
    def user_deletes_shared_object(self, kind: str) -> None:
        for one in self.world.cluster.of_kind(kind):
            self.world.cluster.remove(kind, one["metadata"]["name"])

    @rule(data=st.data(), attempt=st.integers(0, 1))
    def stranger_takes_a_name(self, data: st.DataObject, attempt: int) -> None:
        job = self.world.job
        name = topology.pod_name(job, data.draw(st.sampled_from(topology.tasks(job))), attempt)
        assume(name not in self.world.pods)
        self.world.cluster.put(stranger("Pod", name))

    @rule()
    def stranger_leaves(self) -> None:
        for name, one in self.world.pods.items():
            if labels.controller_uid(one) is None:
                self.world.cluster.remove("Pod", name)

    # What happens to the operator

    @rule(seconds=st.sampled_from((0.015, 0.1, 1.0, 3.0, 20.0, 60.0, 700.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule(calls=st.integers(0, 8), before=st.booleans())
    def operator_will_crash(self, calls: int, before: bool) -> None:
        self.world.cluster.crash_in, self.world.cluster.crash_before = calls, before

    @rule()
    def operator_is_killed(self) -> None:
        self.world.restart()

    @rule(refused=st.booleans())
    def a_call_fails(self, refused: bool) -> None:
        self.world.cluster.fail_next = Refused("exceeded quota: small") if refused else ClusterError("timeout")

    @rule()
    def somebody_touches_the_job(self) -> None:
        """Its resourceVersion moves, so that the next status write may be a stale one."""
        self.world.cluster.change(KIND, "digits", lambda one: one["metadata"].update(annotations={"touched": "yes"}))

    @rule()
    def watch_is_lost(self) -> None:
        self.world.lose_watch()

    @rule()
    def watch_is_back(self) -> None:
        self.world.watch_again()

    @rule()
    def resync(self) -> None:
        self.world.resync()

    @rule(data=st.data(), count=st.integers(1, 5))
    def old_events_come_again(self, data: st.DataObject, count: int) -> None:
        for type_, manifest in data.draw(st.permutations(self.world.cluster.log[-count:])):
            self.world.deliver(type_, manifest)

    # What must hold all the time

    @invariant()
    def only_the_jobs_own_failures_are_charged(self) -> None:
        if not hasattr(self, "world"):
            return
        status = self.world.cluster.objects[KIND, "digits"].get("status") or {}
        assert self.world.cluster.rules.charged_ever <= self.own_failures
        if not self.own_failures:
            assert status.get("phase") != "Failed"

    # How it must end

    def converge(self) -> None:
        world = self.world
        self.stranger_leaves()
        self.stuck.clear()
        world.cluster.crash_in = world.cluster.fail_next = None
        world.watch_again()
        world.resync()
        for _ in range(12):
            self.kubelets_end_what_is_deleted()
            world.run(1)
            self.all_run()
            world.run(1)
            if self.settled():
                break
            world.run(310)
        self.check_evaluator_is_beside_the_chief()
        assert self.settled(), f"{world.job.status} with {[(n, p.get('status')) for n, p in world.pods.items()]}"
        self.kubelets_end_what_is_deleted()
        world.run(200)
        calls, wakes = len(world.cluster.calls), world.job.metadata.resource_version
        world.run(3600)
        assert world.cluster.calls[calls:] == [], "a settled job still asks for something"
        assert world.job.metadata.resource_version == wakes

    def check_evaluator_is_beside_the_chief(self) -> None:
        """What it asks the scheduler for is a pod that is there, else it would be Pending for ever."""
        job = self.world.job
        for one in self.world.pods.values():
            affinity = one["spec"].get("affinity")
            if affinity and job.status.get("phase") not in ENDED and not has_ended(one):
                (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                wanted = term["labelSelector"]["matchLabels"].items()
                assert any(wanted <= labels.of(other).items() for other in self.world.pods.values())

    def settled(self) -> bool:
        job = self.world.job
        phase = job.status.get("phase")
        if phase in ENDED:
            return True
        attempts = job.status.get("attempts", {})
        wanted = {topology.pod_name(job, one, attempts.get(one.id, 0)) for one in topology.tasks(job)}
        well = all(
            not drift.drifted(one, self.world.cluster.objects.get((one["kind"], one["metadata"]["name"]), NOTHING))
            for one in shared.shared_objects(job)
        )
        there = sum(len(self.world.cluster.of_kind(kind)) for kind in SHARED) == len(SHARED)
        return phase == "Running" and wanted == set(self.pods(lambda one: True)) and there and well


def stranger(kind: str, name: str) -> Manifest:
    """Somebody else's object of a name that the job wants, with the job's label but no owner."""
    metadata = {"name": name, "namespace": "default", "labels": {labels.JOB_NAME: "digits"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


@st.composite
def observed(draw: st.DrawFn) -> tuple[Job, Children]:
    """A job at any attempts, and any pods: missing, of this attempt or an earlier one, in any state, some deleted."""
    job = draw(jobs())
    attempts = {one.id: draw(st.integers(0, 2)) for one in topology.tasks(job)}
    counts = {"total": 0, "evaluator": attempts.get("evaluator-0", 0)}
    status = {"attempts": attempts, "allCreated": draw(st.booleans()), "restarts": counts}
    job = builders.with_status(job, status)
    states = st.one_of(st.just({}), st.just(builders.running()), ends, disruptions)
    objects = []
    for one in topology.tasks(job):
        for attempt in range(attempts[one.id] + 1):
            if draw(st.integers(0, 3)):
                pod = builders.pod(job, one.id, deepcopy(draw(states)), attempt=attempt)
                objects.append(builders.deleting(pod) if draw(st.integers(0, 3)) == 0 else pod)
    if draw(st.booleans()):
        another = builders.job(uid="another")
        objects.append(builders.pod(another, "chief-0", deepcopy(draw(states)), attempt=draw(st.integers(0, 3))))
    return job, Children(tuple(objects))


ends = st.builds(builders.ended, st.sampled_from((0, 1, 76, 137, 143)), st.sampled_from((NOW, at(5))))


@settings(max_examples=150, deadline=None, derandomize=True, phases=(Phase.generate, Phase.shrink))
@given(seen=observed(), seconds=st.sampled_from((0, 1, 6, 44, 46, 500)))
def test_any_one_plan(seen: tuple[Job, Children], seconds: int) -> None:
    """Pure; touches only what is ours and superseded; and asks for nothing more when what it asked for is there."""
    job, children = seen
    now = at(seconds)
    for _ in range(4):
        before = deepcopy((job, children))
        made = plan(job, children, now)
        assert (job, children) == before, "the inputs were changed"
        assert plan(job, children, now) == made
        check_actions(builders.with_status(job, made.status or job.status), children, made)
        if made.status is None and not made.actions:
            return
        job = builders.with_status(job, made.status or job.status)
        children = builders.carried_out(children, made, now)
    raise AssertionError(f"still asks for {made}")


def check_actions(job: Job, children: Children, made: Plan) -> None:
    """What each action may be about. `job` has the status that is written before them."""
    pods = [one for one in children.objects if one["kind"] == "Pod"]
    ours = [one for one in pods if labels.controller_uid(one) == job.metadata.uid]
    owned = {one["metadata"]["uid"]: one for one in ours}
    names = [one["metadata"]["name"] for one in owned.values()]
    attempts = job.status.get("attempts", {})
    created = [action.name for action in made.actions if isinstance(action, Create)]
    assert len(created) == len(set(zip(created, (a.kind for a in made.actions if isinstance(a, Create)), strict=True)))
    for action in made.actions:
        if isinstance(action, Create):
            assert action.name not in names
            if action.kind == "Pod" and labels.task_id(action.manifest) == topology.chief_task(job).id:
                earlier = [pod for pod in owned.values() if labels.task_id(pod) == labels.task_id(action.manifest)]
                assert all(has_ended(pod) for pod in earlier), "the chief task would be there twice"
        else:
            assert isinstance(action, (Delete, StopServing))
            pod = owned[action.uid]
            over = job.status.get("phase") in ENDED
            assert over or labels.attempt(pod) < attempts.get(labels.task_id(pod), 0)
    if made.look_again_at is not None:
        assert made.look_again_at < NOW + timedelta(hours=1)


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=150,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
