# SPDX-License-Identifier: Apache-2.0
"""Stalls on a real API server, with pods' statuses as kubelets write them and reports as supervisors give them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.support.jobs import job
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_progress import ServedStatus
from tools.cluster.rest import Api

POLICY = {"stallTimeoutSeconds": 600, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}


@pytest.fixture
def served() -> Iterator[ServedStatus]:
    server = ServedStatus()
    yield server
    server.close()


def has_restarted(times: int) -> Any:
    return lambda found: found["status"].get("restarts", {}).get("total") == times


def test_a_silent_running_task_that_the_chief_reports_is_replaced(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet, served: ServedStatus
) -> None:
    """And not by anybody's silence: of all three supervisors only the chief's is ever read."""
    api.create("dtjobs", namespace, job(network={"statusPort": served.port}, failurePolicy=POLICY))
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
    served.status = {"jobUid": uid, "attempt": 0, "state": "waiting"}
    for pod in ("digits-worker-0-0", "digits-worker-1-0"):
        api.wait_for("pods", namespace, pod, lambda found: found is not None)
        kubelet.run(pod)
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    served.wait_taken()
    assert api.get("dtjobs", namespace, "digits")["status"].get("restarts", {}).get("total", 0) == 0
    served.status = {**served.status, "silent": {"worker-1": 0}}
    api.wait_for("pods", namespace, "digits-worker-1-1", lambda found: found is not None)
    found = api.wait_for("dtjobs", namespace, "digits", has_restarted(1))
    assert found is not None
    assert found["status"]["restarts"]["causes"] == {"Stalled": 1}
    assert found["status"]["lastFailure"]["pod"] == "digits-worker-1-0"
    kubelet.run("digits-worker-1-1")
    served.wait_taken()
    assert has_restarted(1)(api.get("dtjobs", namespace, "digits")), "what was said of an earlier attempt is over"
