"""Deadlines that pass while no operator runs, or while it does not look. (Another module's operator would see them.)"""

from __future__ import annotations

import json
import signal
import time

from dtjob import times
from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object


def test_deadlines_are_known_to_the_next_operator(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """One is over when it comes, the other has yet to be: nothing happens in either job."""
    api.create("dtjobs", namespace, job("over", "Default", runPolicy={"activeDeadlineSeconds": 5}))
    api.create("dtjobs", namespace, job("left", "Default", runPolicy={"activeDeadlineSeconds": 15}))
    since = {}
    for name in ("over", "left"):
        since[name] = times.parse(wait_phase(api, namespace, "Running", name)["status"]["active"]["since"])
    operator.kill()
    while time.time() < since["over"].timestamp() + 6:
        time.sleep(0.2)
    operator.start()
    assert wait_phase(api, namespace, "Failed", "over")["status"]["reason"] == "DeadlineExceeded"
    left = wait_phase(api, namespace, "Failed", "left")["status"]
    assert left["reason"] == "DeadlineExceeded"
    assert times.parse(left["completionTime"]) >= times.parse(left["active"]["since"])
    assert (times.parse(left["completionTime"]) - since["left"]).total_seconds() >= 15


def test_a_time_to_live_that_is_raised_at_the_last_moment_holds(
    operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    """The operator wakes up for the deletion before it hears of the change."""
    ttl = 10
    api.create("dtjobs", namespace, job(strategy="Default", runPolicy={"ttlSecondsAfterFinished": {"succeeded": ttl}}))
    kubelet.run("digits-chief-0-0")
    kubelet.succeed("digits-chief-0-0")
    ended = times.parse(wait_phase(api, namespace, "Succeeded")["status"]["completionTime"]).timestamp()
    operator.signal(signal.SIGSTOP)
    raised = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": {"succeeded": 3600}}}}
    kubectl("patch", "dtjob", "digits", "--type=merge", "--patch", json.dumps(raised))
    stored = api.get("dtjobs", namespace, "digits")["metadata"]
    while time.time() < ended + ttl + 1:
        time.sleep(0.2)
    operator.signal(signal.SIGCONT)

    def heard(found: Object | None) -> bool:
        assert found is not None, "the job was deleted"
        return bool(found["status"]["observedGeneration"] == stored["generation"])

    found = api.wait_for("dtjobs", namespace, "digits", heard)
    assert found is not None
    assert found["metadata"]["uid"] == stored["uid"]
    assert "deletionTimestamp" not in found["metadata"]
    kubectl("patch", "dtjob", "digits", "--type=merge", "--patch", json.dumps(raised).replace("3600", "0"))
    api.wait_for("dtjobs", namespace, "digits", lambda one: one is None)
