# SPDX-License-Identifier: Apache-2.0
"""The reconciler over the simulated cluster: order, refusals, conflicts and crashes at every single call."""

from collections.abc import Sequence

import pytest

from dtjob.api.job import KIND, Job
from dtjob.controller import reconciler
from dtjob.controller.cluster import ClusterError, JobKey, Refused, Stale
from dtjob.controller.pace.backoff import REPAIR_WAIT, REPAIRS_AT_ONCE
from dtjob.controller.store import Store
from dtjob.objects import drift, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan import pods
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import stranger
from tests.unit.operator.controller.worlds import all_run, running
from tests.unit.operator.simulation import operator
from tests.unit.operator.simulation.operator import World, job_manifest


def phase(made: World) -> str:
    return str(made.job.status.get("phase"))


def reason(made: World) -> str:
    return str(made.job.status.get("reason"))


def kinds(calls: Sequence[str]) -> list[str]:
    return [call.rsplit(" ", 1)[0] for call in calls]


def test_a_pod_that_goes_during_the_call_that_deletes_it_is_deleted_once() -> None:
    """Its deletion is told by a watch later, and the other pods, which end, bring about a plan before that."""
    with World(builders.job(workers=3)) as made:
        made.run(3)
        for name in list(made.pods)[1:]:
            made.cluster.change("Pod", name, lambda one: one.update(status=builders.running()))
        made.run(3)
        made.cluster.calls.clear()
        made.cluster.events.clear()
        made.cluster.change(KIND, "digits", lambda one: one["spec"].update(suspend=True))
        made.run(3)
        assert len([call for call in made.cluster.calls if call.startswith("delete")]) == 4
        told = [one.message for one in made.cluster.events if one.reason == "SuccessfulDelete"]
        assert [text.partition(":")[0] for text in told] == ["Deleted 4 pods"]


def test_the_pods_of_a_big_job_are_deleted_without_a_walk_through_all_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod without a node is gone at once. 4,000 of them took 1.6 s of CPU."""
    with World(builders.job(workers=100)) as made:
        made.run(3)
        walks, children = list[JobKey](), Store.children

        def walk(store: Store, key: JobKey) -> Children:
            walks.append(key)
            return children(store, key)

        monkeypatch.setattr(Store, "children", walk)
        made.cluster.change(KIND, "digits", lambda one: one["spec"].update(suspend=True))
        made.run(3)
        assert made.pods == {}
        assert len(walks) < 20


def test_a_new_job_gets_its_pods_before_its_first_status():
    with World(builders.job()) as made:
        made.run(3)
        assert set(kinds(made.cluster.calls[:3])) == {"create Service", "create ConfigMap", "create NetworkPolicy"}
        assert kinds(made.cluster.calls[3:6]) == ["create Pod"] * 3
        assert made.cluster.calls[6:] == ["write status"]
        assert made.job.status["internal"]["allCreated"]


@pytest.mark.parametrize(
    ("job", "kind", "name", "advice"),
    [
        (builders.job(), "Service", "digits", "delete it"),
        (
            builders.claim_job("Retain"),
            "PersistentVolumeClaim",
            "digits-checkpoints",
            "mount it with checkpoint.storage.volume",
        ),
    ],
    ids=["Service", "claim"],
)
def test_no_pod_starts_while_a_shared_object_is_refused(job: Job, kind: str, name: str, advice: str):
    """A pod without its Service has no name; without its NetworkPolicy anybody may reach TensorFlow's port."""
    with World(job) as made:
        made.cluster.put(stranger(kind, name))
        made.run(60)
        assert made.pods == {}
        words = f"{kind}/{name}: {kind} {name} exists and is not this job's; {advice} or rename the job"
        assert (reason(made), made.job.status["message"]) == ("CannotCreate", words)
        made.cluster.remove(kind, name)
        made.run(20)
        assert len(made.pods) == 3
        assert reason(made) == "WaitingForPods"


def test_a_pod_of_another_owner_with_a_tasks_name_is_reported_once_and_left_alone():
    with World(builders.job()) as made:
        made.cluster.put(stranger("Pod", "digits-worker-0-0"))
        made.run(600)
        assert sorted(event.reason for event in made.cluster.events) == ["Blocked", "FailedCreate", "SuccessfulCreate"]
        assert labels.controller_uid(made.pods["digits-worker-0-0"]) is None
        tries = made.cluster.calls.count("create Pod digits-worker-0-0")
        assert tries <= 600 / 15 + 3
        made.cluster.remove("Pod", "digits-worker-0-0")
        made.run(20)
        all_run(made)
        assert (phase(made), made.job.status["message"]) == ("Running", "")
        assert {c["type"]: c["status"] for c in made.job.status["conditions"]}["Blocked"] == "False"


def test_a_pod_is_deleted_once_however_late_the_watch_shows_it(monkeypatch: pytest.MonkeyPatch):
    with running() as made:
        made.cluster.change(KIND, "digits", lambda one: one["spec"].update(suspend=True))
        made.run(operator.WATCH_LAG_SECONDS)
        monkeypatch.setattr(operator, "WATCH_LAG_SECONDS", 5.0)
        made.run(1)
        made.queue.add(made.key)  # as a report of its progress brings it
        made.run(1)
        told = [call for call in made.cluster.calls if call.startswith("delete Pod")]
        assert sorted(told) == [f"delete Pod {name}" for name in sorted(made.pods)]


def test_a_pod_is_taken_out_of_service_once_however_late_the_watch_shows_it(monkeypatch: pytest.MonkeyPatch):
    """It is being deleted already, so no deletion of ours tells how it is stored."""
    with running(program=False) as made:
        made.cluster.ask_to_delete("Pod", "digits-worker-0-0")
        kill_a_worker(made)
        made.run(operator.WATCH_LAG_SECONDS)
        monkeypatch.setattr(operator, "WATCH_LAG_SECONDS", 5.0)
        for _ in range(3):
            made.run(1)
            made.queue.add(made.key)  # as a report of its progress brings it
        assert made.cluster.calls.count("stop serving digits-worker-0-0") == 1


def test_a_job_that_is_applied_again_waits_for_its_predecessors_objects():
    """kubectl delete returns before the children are collected; nobody should be told to delete them."""
    with running() as made:
        made.cluster.remove(KIND, "digits")
        made.cluster.put(job_manifest(builders.job(uid="applied-again")))
        made.run(1)
        old = {name: pod["metadata"]["uid"] for name, pod in made.pods.items()}
        for kind in ("Service", "ConfigMap", "NetworkPolicy"):
            for one in made.cluster.of_kind(kind):
                made.cluster.remove(kind, one["metadata"]["name"])
        for name in old:
            made.cluster.ask_to_delete("Pod", name)
        made.run(10)
        for name in old:
            made.cluster.remove("Pod", name)
        made.run(60)
        assert {labels.controller_uid(pod) for pod in made.pods.values()} == {"applied-again"}
        assert len(made.pods) == 3
        assert {event.reason for event in made.cluster.events} == {"SuccessfulCreate"}


WEBHOOK_DOWN = ClusterError('failed calling webhook "pods.example.com": connection refused')


def blocked(made: World) -> str:
    return {c["type"]: c["status"] for c in made.job.status["conditions"]}.get("Blocked", "absent")


@pytest.mark.parametrize("what", ["Service digits", "Pod digits-worker-0-0"])
def test_a_create_that_keeps_failing_is_said_until_it_works(what: str):
    """Such as one that a fail-closed admission webhook stands before: 500 is no refusal, but it may stay."""
    with World(builders.job()) as made:
        made.cluster.failing[f"create {what}"] = WEBHOOK_DOWN
        made.run(1)
        assert (reason(made), blocked(made)) == ("WaitingForPods", "absent")  # it may pass
        made.run(120)
        assert (reason(made), blocked(made)) == ("CannotCreate", "True")
        assert made.job.status["message"] == f"{what.replace(' ', '/')}: {WEBHOOK_DOWN}"
        told = {event.reason: event.message for event in made.cluster.events if event.type == "Warning"}
        assert told.pop("Blocked")
        assert told == ({"FailedCreate": f"Error creating pod: {what[4:]}: {WEBHOOK_DOWN}"} if "Pod" in what else {})
        made.cluster.failing.clear()
        made.run(65)
        assert len(made.pods) == 3
        assert (reason(made), blocked(made)) == ("WaitingForPods", "False")
        assert str(WEBHOOK_DOWN) not in made.job.status["message"]


def test_a_deletion_that_keeps_failing_is_said_until_it_works():
    with running() as made:
        made.cluster.failing["delete Pod digits-worker-1-0"] = WEBHOOK_DOWN
        kill_a_worker(made)
        made.run(120)
        assert (reason(made), blocked(made)) == ("CannotCreate", "True")
        assert made.job.status["message"] == f"deleting Pod/digits-worker-1-0: {WEBHOOK_DOWN}"
        writes = made.cluster.calls.count("write status")
        made.run(600)
        assert made.cluster.calls.count("write status") == writes
        made.cluster.failing.clear()
        made.run(65)
        assert "digits-worker-1-1" in made.pods
        assert blocked(made) == "False"


def test_a_spec_that_the_operator_cannot_read_is_not_accepted():
    with World(builders.job()) as made:
        made.run(1)
        made.cluster.change(KIND, "digits", lambda one: one["spec"].update(strategy="blue"))
        made.run(30)
        status = made.job_status()
        assert (status["phase"], status["reason"]) == ("Pending", "InvalidSpec")
        assert "spec.strategy" in status["message"]
        said = {one["type"]: one for one in status["conditions"]}["SpecAccepted"]
        assert (said["status"], said["reason"], said["message"]) == ("False", "InvalidSpec", status["message"])
        assert said["observedGeneration"] == status["observedGeneration"]
        assert [event.reason for event in made.cluster.events if event.type == "Warning"] == ["InvalidSpec"]
        made.cluster.change(KIND, "digits", lambda one: one["spec"].update(strategy="MultiWorkerMirrored"))
        made.run(30)
        said = {one["type"]: one["status"] for one in made.job_status()["conditions"]}
        assert (said["SpecAccepted"], made.job_status()["reason"]) == ("True", "WaitingForPods")


def test_a_pod_that_cannot_be_built_is_said_as_one_that_is_refused(monkeypatch: pytest.MonkeyPatch):
    def stumble(*_: object, **__: object) -> Manifest:
        raise AttributeError("'str' object has no attribute 'get'")

    with World(builders.job()) as made:
        with monkeypatch.context() as patch:
            patch.setattr(pods, "pod", stumble)
            made.run(30)
        assert (reason(made), blocked(made), made.pods) == ("CannotCreate", "True", {})
        assert (
            "the pod template has a value of another form than a pod's (AttributeError: "
            in made.job_status()["message"]
        )
        made.run(600)
        assert (phase(made), blocked(made), len(made.pods)) == ("Pending", "False", 3)


def test_an_unexpected_error_is_reported_in_one_event_and_the_job_recovers(monkeypatch: pytest.MonkeyPatch):
    def stumble(*_: object) -> None:
        raise AttributeError("'str' object has no attribute 'get'")

    with World(builders.job()) as made:
        with monkeypatch.context() as patch:
            patch.setattr(reconciler, "plan", stumble)
            with pytest.raises(AssertionError, match="a bug in dtjob"):
                made.run(30)
        made._bugs.found.clear()
        assert [event.reason for event in made.cluster.events] == ["InternalError"]
        assert "AttributeError: 'str' object has no attribute 'get'" in made.cluster.events[0].message
        made.run(120)
        assert len(made.pods) == 3


@pytest.mark.parametrize("kind", ["Service", "NetworkPolicy"])
def test_an_object_that_is_changed_again_and_again_is_repaired_less_and_less_often(kind: str):
    """Such as by an admission webhook that wants it otherwise; and nobody's pods wait for that."""

    def meddle(type_: str, manifest: Manifest) -> None:
        watcher(type_, manifest)
        if manifest["kind"] == kind and not drift.drifted(shared_object(made.job, kind), manifest):
            made.cluster.change(kind, "digits", lambda one: one["spec"].update(ports=[], ingress=[{}]))

    with World(builders.job()) as made:
        watcher, made.cluster._watcher = made.cluster._watcher, meddle
        made.run(1200)
        repairs = made.cluster.calls.count(f"repair {kind} digits")
        assert REPAIRS_AT_ONCE < repairs < REPAIRS_AT_ONCE + 8 + 1200 / REPAIR_WAIT.longest
        assert len(made.pods) == 3
        made.cluster._watcher = watcher
        made.run(REPAIR_WAIT.longest)
        assert not drift.drifted(shared_object(made.job, kind), made.cluster.objects[kind, "digits"])


def shared_object(job: Job, kind: str) -> Manifest:
    return next(one for one in shared.shared_objects(job) if one["kind"] == kind)


REFUSED = Refused("denied the request; delete it")


def test_the_wait_before_a_start_is_no_longer_because_a_call_fails():
    """What fails is tried again ever later, and no more often than once a minute in the end."""
    policy = {"backoff": {"initialSeconds": 100, "maxSeconds": 100}}
    with running(failurePolicy=policy) as made:
        made.cluster.failing["delete Pod digits-worker-1-0"] = REFUSED
        made.cluster.failing["delete Pod digits-worker-1-1"] = REFUSED
        kill_a_worker(made)
        made.run(50)
        made.cluster.change("Pod", "digits-worker-1-1", lambda one: one.update(status=builders.out_of_memory()))
        made.run(99)
        assert "digits-worker-1-2" not in made.pods
        made.run(3)
        assert "digits-worker-1-2" in made.pods


@pytest.mark.parametrize(
    ("call", "error"),
    [
        *(("delete Pod", error) for error in (REFUSED, WEBHOOK_DOWN, Stale("the pod has changed"))),
        ("stop serving", REFUSED),
    ],
)
def test_while_the_deletion_of_a_pod_fails_its_successor_waits_at_first(call: str, error: ClusterError):
    """The pod still trains. If the deletion fails for good, as by an admission policy, that must not end the job."""
    with running(program=False) as made:
        made.cluster.failing[f"{call} digits-worker-0-0"] = error
        kill_a_worker(made)  # the others of its group are replaced with it
        made.run(5)
        assert "digits-worker-1-1" in made.pods
        assert "digits-worker-0-1" not in made.pods
        assert ("deletionTimestamp" in made.pods["digits-worker-0-0"]["metadata"]) is (call == "stop serving")
        made.run(120)
        assert "digits-worker-0-1" in made.pods


def test_a_shared_object_that_is_gone_before_its_repair_is_created_again():
    """Its DELETED has not come yet."""
    with World(builders.job()) as made:
        made.run(1)
        made.lose_watch()
        made.cluster.change("Service", "digits", lambda one: one["spec"].update(selector={"a": "b"}))
        made.deliver("MODIFIED", made.cluster.objects["Service", "digits"])
        made.cluster.remove("Service", "digits")
        made.run(1)
        assert ("Service", "digits") in made.cluster.objects


def test_a_job_that_is_being_deleted_is_left_alone():
    job = builders.job()
    with World(job) as made:
        made.run(0.02)
        made.cluster.change(
            KIND, "digits", lambda one: one["metadata"].update(deletionTimestamp="2026-11-21T10:00:00Z")
        )
        made.restart()
        calls = len(made.cluster.calls)
        made.run(60)
        assert made.cluster.calls[calls:] == []


def kill_a_worker(made: World) -> None:
    made.cluster.change("Pod", "digits-worker-1-0", lambda one: one.update(status=builders.out_of_memory()))
