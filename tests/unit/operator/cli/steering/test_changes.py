# SPDX-License-Identifier: Apache-2.0
"""Commands that change a job say what happens, and refuse what cannot happen."""

from collections.abc import Callable

import pytest

from dtjob.cli.bad_input import BadInput
from dtjob.cli.steering import changes
from dtjob.client.cluster import Cluster
from tests.unit.operator.cli.steering.conftest import JOBS, stored
from tests.unit.operator.cli.watching.jobs import pod
from tests.unit.operator.client.api_server import ApiServer

PODS = "/api/v1/namespaces/team/pods"


def changed(server: ApiServer) -> list[object]:
    return [body for method, _, body in server.asked if method == "PATCH"]


def test_suspend_and_resume_change_the_spec(server: ApiServer, cluster: Cluster) -> None:
    assert "dtjob resume digits" in changes.suspend(cluster, "digits")
    changes.resume(cluster, "digits")
    assert changed(server) == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


def test_only_elastic_workers_are_scaled(server: ApiServer, cluster: Cluster) -> None:
    with pytest.raises(BadInput, match="only a job with elasticPolicy"):
        changes.scale(cluster, "digits", 4)
    server.answer(f"GET {JOBS}/digits", stored(elasticPolicy={}))
    changes.scale(cluster, "digits", 4)
    assert changed(server) == [{"spec": {"replicas": 4}}]


def test_a_restart_waits_until_the_job_has_saved(server: ApiServer, cluster: Cluster) -> None:
    suspended = stored("Suspended")
    suspended["status"]["conditions"] = [{"type": "Suspended", "status": "True"}]
    server.answer(f"GET {JOBS}/digits", stored())
    server.answer(f"WATCH {JOBS}", [{"type": "MODIFIED", "object": suspended}])
    changes.restart(cluster, "digits")
    assert changed(server) == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


def test_the_pod_of_one_task_is_replaced(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {PODS}", {"items": [pod("worker-1"), pod("worker-1", 1), pod("chief-0")], "metadata": {}})
    server.answer(f"DELETE {PODS}/digits-worker-1-1", {})
    assert "digits-worker-1-1 deleted" in changes.restart(cluster, "digits", "worker-1")
    with pytest.raises(BadInput, match="no pod of ps"):
        changes.restart(cluster, "digits", "ps")


@pytest.mark.parametrize("command", [changes.suspend, changes.resume, changes.restart])
def test_a_job_that_has_ended_is_refused(
    server: ApiServer, cluster: Cluster, command: Callable[[Cluster, str], str]
) -> None:
    server.answer(f"GET {JOBS}/digits", stored("Failed"))
    with pytest.raises(BadInput, match="digits: has ended \\(Failed\\)"):
        command(cluster, "digits")
    assert changed(server) == []
