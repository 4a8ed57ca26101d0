# SPDX-License-Identifier: Apache-2.0
"""What the reconciler does by itself about a job in which nothing happens, that is not its own or that has gone."""

from typing import Any

import pytest

from dtjob.api.job import KIND
from dtjob.controller.cluster import ClusterError, Refused
from dtjob.controller.pace import pace
from dtjob.controller.pace.pace import MUCH
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.controller.worlds import running
from tests.unit.operator.simulation.api import copied
from tests.unit.operator.simulation.operator import World, job_manifest


def world(*arguments: Any, **job: Any) -> World:
    return World(builders.job(*arguments, **job))


def starts_slowly(made: World, name: str) -> None:
    """This pod has a node, and its kubelet does not get as far as to start it."""

    def creating(pod: Manifest) -> None:
        pod["spec"]["nodeName"] = "node-1"
        pod["status"] = builders.waiting("ContainerCreating")

    made.cluster.change("Pod", name, creating)


def set_spec(made: World, **fields: Any) -> None:
    def change(job: Manifest) -> None:
        job["spec"].update(fields)
        job["metadata"]["generation"] += 1

    made.cluster.change(KIND, made.key[1], change)


def test_the_time_of_a_job_that_runs_is_up_though_nothing_happens() -> None:
    """Also after a restart of the operator."""
    with running(activeDeadlineSeconds=7200) as made:
        made.run(3000)
        made.restart()
        made.run(4195)
        assert (made.job.status["phase"], made.job.status["reason"]) == ("Running", "AllTasksRunning")
        made.run(6)
        assert (made.job.status["phase"], made.job.status["reason"]) == ("Failed", "DeadlineExceeded")
        assert [one.reason for one in made.cluster.events if one.type == "Warning"] == ["DeadlineExceeded"]


def test_a_time_to_live_that_was_raised_just_now_is_not_over() -> None:
    """The operator has yet to hear of it."""
    with running("Default", ttlSecondsAfterFinished=60) as made:
        made.cluster.change("Pod", "digits-chief-0-0", lambda one: one.update(status=builders.ended(0, made.now())))
        made.run(50)
        made.lose_watch()
        set_spec(made, ttlSecondsAfterFinished=200)
        made.run(30)
        assert (KIND, "digits") in made.cluster.objects
        made.watch_again()
        made.run(100)
        assert (KIND, "digits") in made.cluster.objects
        assert made.job.status["phase"] == "Succeeded"
        assert "Blocked" not in {one["type"] for one in made.job.status["conditions"]}
        made.run(60)
        assert (KIND, "digits") not in made.cluster.objects


@pytest.mark.parametrize("spec", [{}, {"of a newer version": 1}, {"suspend": True}])
def test_a_job_of_another_controller_is_left_alone(spec: dict[str, Any]) -> None:
    """Also one that this version could not read."""
    with world(managedBy="kueue.x-k8s.io/multikueue") as made:
        set_spec(made, **spec)
        made.run(3600)
        made.restart()
        made.run(60)
        assert made.cluster.calls == []
        assert made.cluster.events == []
        assert made.job_status() == {}


@pytest.mark.parametrize("refused", [False, True])
def test_the_events_of_a_pod_that_does_not_start_are_read_once_a_minute(refused: bool) -> None:
    said, asked = 'FailedMount: configmap "settings" not found', list[str]()

    async def warning_about(namespace: str, pod_uid: str) -> str:
        asked.append(pod_uid)
        if refused:
            raise ClusterError("events is forbidden")
        return said

    with world(workers=1) as made:
        made.cluster.warning_about = warning_about  # type: ignore[method-assign]
        made.run(1)
        stuck = made.pods["digits-worker-0-0"]
        made.cluster.change("Pod", "digits-chief-0-0", lambda one: one.update(status=builders.running()))
        starts_slowly(made, "digits-worker-0-0")
        made.run(20)
        assert asked == [stuck["metadata"]["uid"]]
        message = made.job.status["message"]
        assert message.startswith("worker-0 waits: ContainerCreating (pod digits-worker-0-0, on node node-1 since ")
        assert (said in message) is not refused
        made.run(60)
        assert asked == [stuck["metadata"]["uid"]] * 2


def test_a_pod_that_is_slow_is_asked_about_when_a_status_is_due_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events and the ConfigMap. Where hundreds of jobs begin at once, most of their pods run by then."""
    monkeypatch.setattr(WorkQueue, "at_hand", MUCH + 1)
    monkeypatch.setattr(pace, "LONGEST_FIRST_SECONDS", 30.0)
    asked: list[str] = []

    async def warning_about(namespace: str, pod_uid: str) -> str:
        asked.append(pod_uid)
        return "FailedMount: no such volume"

    with world(workers=1) as made:
        get = made.cluster.get

        async def counted(kind: str, namespace: str | None, name: str) -> Manifest | None:
            asked.append(kind)
            return await get(kind, namespace, name)

        made.cluster.get = counted  # type: ignore[method-assign]
        made.cluster.warning_about = warning_about  # type: ignore[method-assign]
        made.run(1)
        made.cluster.change("Pod", "digits-chief-0-0", lambda one: one.update(status=builders.running()))
        starts_slowly(made, "digits-worker-0-0")
        made.run(25)
        assert asked == []
        assert not made.job.status
        made.run(20)
        assert asked == [made.pods["digits-worker-0-0"]["metadata"]["uid"], "ConfigMap"]
        assert "FailedMount: no such volume" in made.job.status["message"]


def test_a_config_map_is_made_again_and_a_refused_pod_beside_it_is_told_of_once() -> None:
    with world(workers=2) as made:
        made.cluster.failing["create Pod digits-worker-1-0"] = Refused("exceeded quota: compute")
        made.run(1)
        (first,) = made.cluster.of_kind("ConfigMap")
        made.cluster.remove("ConfigMap", first["metadata"]["name"])
        made.cluster.change("Pod", "digits-chief-0-0", lambda one: one.update(status=builders.running()))
        starts_slowly(made, "digits-worker-0-0")
        made.run(120)
        assert len(made.cluster.of_kind("ConfigMap")) == 1
        told = [one.reason for one in made.cluster.events]
        assert (told.count("FailedCreate"), told.count("Blocked")) == (1, 1)


@pytest.mark.parametrize("again", [False, True], ids=["no job has its name", "another job has its name"])
@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "NetworkPolicy", "Pod"])
def test_nothing_is_made_for_a_job_that_has_gone_unheard(kind: str, again: bool) -> None:
    """It is deleted as between a LIST and a watch: nobody tells of it."""
    with World(builders.job()) as made:
        made.run(3)
        made.lose_watch()
        made.cluster.remove(KIND, made.key[1])
        if again:
            made.cluster.put(job_manifest(builders.job(uid="another")))
        made.cluster.calls.clear()
        for one in copied(made.cluster.of_kind(kind)):
            if labels.JOB_NAME in labels.of(one):
                made.cluster.remove(kind, one["metadata"]["name"])
                made.deliver("DELETED", one)
        made.run(60)
        assert "write status" in made.cluster.calls
        assert not [call for call in made.cluster.calls if call.startswith("create")]
        assert (made.store.job(made.key) is None) is not again


def test_a_job_for_which_nothing_is_made_is_not_confirmed() -> None:
    """It would cost a call at each of its changes."""
    with World(builders.job()) as made:
        made.cluster.quota = 0
        made.run(50)
        writes = made.cluster.calls.count("write status")
        for _ in range(20):
            made.queue.add(made.key)
            made.run(0.1)
        assert made.cluster.calls.count("write status") == writes
