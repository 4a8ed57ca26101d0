# SPDX-License-Identifier: Apache-2.0
"""A job is changed, and what cannot happen is refused."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from dtjob.api.spec.replica_specs import Role
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, NotDone, Refused, TimedOut
from dtjob.client.verbs import steering
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, pod, stored


def changed(server: ApiServer) -> list[object]:
    """The changes that were asked for, all of the job that was read."""
    bodies = [body for method, _, body in server.asked if method == "PATCH"]
    assert all(body.pop("metadata") == {"uid": "u"} for body in bodies)
    return bodies


def test_suspend_and_resume_change_the_spec(server: ApiServer, cluster: Cluster) -> None:
    steering.suspend(cluster, "digits")
    steering.resume(cluster, "digits")
    assert changed(server) == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


def test_only_elastic_workers_are_scaled(server: ApiServer, cluster: Cluster) -> None:
    with pytest.raises(Refused, match="only a job with elasticPolicy"):
        steering.scale(cluster, "digits", 4)
    server.answer(f"GET {JOBS}/digits", stored(elasticPolicy={}))
    steering.scale(cluster, "digits", 4)
    assert changed(server) == [{"spec": {"replicaSpecs": {"worker": {"replicas": 4}}}}]


def test_data_workers_are_scaled_in_any_job_that_has_them(server: ApiServer, cluster: Cluster) -> None:
    with pytest.raises(Refused, match=r"has no data workers; add replicaSpecs\.data"):
        steering.scale(cluster, "digits", 4, Role.DATA)
    server.answer(f"GET {JOBS}/digits", stored(replicaSpecs={"chief": {}, "data": {"replicas": 1}}))
    steering.scale(cluster, "digits", 4, Role.DATA)
    assert changed(server) == [{"spec": {"replicaSpecs": {"data": {"replicas": 4}}}}]


def suspended(**counts: int) -> dict[str, Any]:
    found = stored("Suspended", suspend=True)
    found["status"]["conditions"] = [{"type": "Suspended", "status": "True"}]
    found["status"]["replicaStatuses"] = {"worker": {"replicas": 2, **counts}}
    return {"type": "MODIFIED", "object": found}


def test_a_restart_waits_until_the_pods_have_saved_and_ended(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {JOBS}/digits", stored(), stored(suspend=True))
    server.answer(f"WATCH {JOBS}", [suspended(active=2), suspended(pending=1), suspended(succeeded=1)])
    steering.restart(cluster, "digits")
    assert changed(server) == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


def test_a_restart_ends_if_somebody_resumes_the_job(server: ApiServer, cluster: Cluster) -> None:
    """What they do with the job afterwards is theirs."""
    server.answer(f"GET {JOBS}/digits", stored(), stored(suspend=True))
    server.answer(f"WATCH {JOBS}", [suspended(active=2), {"type": "MODIFIED", "object": stored()}, suspended()])
    with pytest.raises(NotDone, match="somebody resumed it"):
        steering.restart(cluster, "digits")
    assert changed(server) == [{"spec": {"suspend": True}}]


def test_a_restart_whose_first_change_is_not_answered_resumes_the_job(server: ApiServer, cluster: Cluster) -> None:
    """The API server may have made the change."""
    server.answer(f"PATCH {JOBS}/digits", Fault(), {})
    with pytest.raises(ClientError, match="cannot be reached"):
        steering.restart(cluster, "digits")
    assert changed(server) == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


def test_a_restart_that_a_signal_ends_resumes_the_job(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {JOBS}/digits", stored(), stored(suspend=True))
    server.answer(f"WATCH {JOBS}", Fault(broken=b"{", hold=True))
    threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGHUP)).start()
    with pytest.raises(SystemExit, match="129"):
        steering.restart(cluster, "digits")
    assert changed(server)[-1] == {"spec": {"suspend": False}}


@pytest.mark.parametrize("verb", [steering.suspend, steering.resume, steering.restart])
def test_a_job_that_is_being_deleted_is_left_alone(
    server: ApiServer, cluster: Cluster, verb: Callable[[Cluster, str], None]
) -> None:
    deleted = stored()
    deleted["metadata"]["deletionTimestamp"] = "2026-11-23T11:00:00Z"
    server.answer(f"GET {JOBS}/digits", deleted)
    with pytest.raises(Refused, match="is being deleted"):
        verb(cluster, "digits")
    assert changed(server) == []


def test_a_job_that_somebody_or_a_queue_has_suspended_is_not_restarted(server: ApiServer, cluster: Cluster) -> None:
    for job, said in ((stored(suspend=True), "dtjob resume digits"), (stored("Suspended"), "waits in its queue")):
        server.answer(f"GET {JOBS}/digits", job)
        with pytest.raises(Refused, match=said):
            steering.restart(cluster, "digits")
    assert changed(server) == []


@pytest.mark.parametrize(
    ("watched", "said"),
    [
        ([suspended(active=2)], "digits: its pods did not end within 0 s, so it goes on with them"),
        ([{"type": "MODIFIED", "object": stored("Succeeded")}], "digits: was not restarted: Succeeded"),
        ([{"type": "DELETED", "object": stored()}], "digits: was not restarted: deleted"),
        (Fault(403, message="no watch"), "no watch"),
    ],
)
def test_a_job_is_resumed_whatever_happens_to_its_restart(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, watched: Any, said: str
) -> None:
    monkeypatch.setattr(steering, "SUSPENDED_SECONDS", 0.3)
    server.answer(f"GET {JOBS}/digits", stored(), stored(suspend=True))
    server.answer(f"WATCH {JOBS}", watched)
    with pytest.raises(ClientError, match=said):
        steering.restart(cluster, "digits")
    assert changed(server)[-1] == {"spec": {"suspend": False}}


def test_a_job_that_stays_suspended_is_said(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"PATCH {JOBS}/digits", {}, Fault(403, message="you may not patch"))
    server.answer(f"GET {JOBS}/digits", stored(), stored(suspend=True))
    server.answer(f"WATCH {JOBS}", [suspended()])
    with pytest.raises(NotDone, match="digits: stays suspended; dtjob resume digits continues it: you may not patch"):
        steering.restart(cluster, "digits")


def test_a_second_ctrl_c_while_the_job_is_resumed_says_that_it_stays_suspended(
    server: ApiServer, cluster: Cluster
) -> None:
    def interrupt() -> None:
        while len([method for method, *_ in server.asked if method == "PATCH"]) < 2:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    server.answer(f"GET {JOBS}/digits", stored(), stored(suspend=True))
    server.answer(f"PATCH {JOBS}/digits", {}, Fault(broken=b"{", hold=True))
    server.answer(f"WATCH {JOBS}", [suspended()])
    threading.Thread(target=interrupt).start()
    with pytest.raises(NotDone, match="digits: stays suspended; dtjob resume digits continues it: interrupted again"):
        steering.restart(cluster, "digits")


def gone(server: ApiServer, *answers: Any) -> None:
    server.answer(f"DELETE {JOBS}/digits", {})
    server.answer(f"GET {JOBS}/digits", stored(), *answers)


def test_a_deletion_is_waited_for_also_when_it_is_quick(server: ApiServer, cluster: Cluster) -> None:
    another = stored()
    another["metadata"]["uid"] = "another"
    for answer in (Fault(404), another):
        gone(server, answer)
        steering.delete(cluster, "digits", 5.0)
    assert server.asked[1][2] == {"propagationPolicy": "Foreground", "preconditions": {"uid": "u"}}


def test_a_job_that_is_not_gone_in_time_is_no_deleted_one(server: ApiServer, cluster: Cluster) -> None:
    gone(server)
    server.answer(f"WATCH {JOBS}", [])
    with pytest.raises(TimedOut, match="digits: is told to end, and is not gone after 0 s"):
        steering.delete(cluster, "digits", 0.2)


def test_the_pod_of_one_task_is_replaced(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {PODS}", {"items": [pod("worker-1"), pod("worker-1", 1), pod("chief-0")], "metadata": {}})
    server.answer(f"DELETE {PODS}/digits-worker-1-1", {})
    assert steering.replace_task(cluster, "digits", "worker-1") == ["digits-worker-1-1"]
    assert server.asked[-1][2]["preconditions"] == {"uid": "worker-1-1"}
    with pytest.raises(Refused, match="no pod of ps"):
        steering.replace_task(cluster, "digits", "ps")


@pytest.mark.parametrize("command", [steering.suspend, steering.resume, steering.restart])
def test_a_job_that_has_ended_is_refused(
    server: ApiServer, cluster: Cluster, command: Callable[[Cluster, str], object]
) -> None:
    server.answer(f"GET {JOBS}/digits", stored("Failed"))
    with pytest.raises(Refused, match="digits: has ended \\(Failed\\)"):
        command(cluster, "digits")
    assert changed(server) == []
