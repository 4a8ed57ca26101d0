# SPDX-License-Identifier: Apache-2.0
"""Deadlines that pass while no operator runs. (Another module's operator would see them.)"""

import time

from dtjob import times
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object


def is_active(found: Object | None) -> bool:
    return "since" in (found or {}).get("status", {}).get("active", {})


def test_deadlines_are_known_to_the_next_operator(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """One is over when it comes, the other has yet to be: nothing happens in either job."""
    api.create("dtjobs", namespace, job("over", "Default", activeDeadlineSeconds=5))
    api.create("dtjobs", namespace, job("left", "Default", activeDeadlineSeconds=15))
    since = {}
    for name in ("over", "left"):
        found = api.wait_for("dtjobs", namespace, name, is_active)
        assert found is not None
        since[name] = times.parse(found["status"]["active"]["since"])
    operator.kill()
    while time.time() < since["over"].timestamp() + 6:
        time.sleep(0.2)
    operator.start()
    assert wait_phase(api, namespace, "Failed", "over")["status"]["reason"] == "DeadlineExceeded"
    left = wait_phase(api, namespace, "Failed", "left")["status"]
    assert left["reason"] == "DeadlineExceeded"
    assert times.parse(left["completionTime"]) >= times.parse(left["active"]["since"])
    assert (times.parse(left["completionTime"]) - since["left"]).total_seconds() >= 15
