# SPDX-License-Identifier: Apache-2.0
"""What the operator does when tasks fail, against a real API server."""

import pytest

from tests.cluster.support.jobs import job, uids, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

SERVING = "training.dtjob.dev/serving"
THREE = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")


@pytest.fixture
def running(shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet) -> Kubelet:
    """Chief and two workers under MultiWorkerMirrored, running."""
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    return auto_kubelet


def restarts(found: Object) -> Object:
    counts: Object = found["status"]["restarts"]
    return counts


def test_only_the_dead_pod_is_replaced(running: Kubelet, api: Api, namespace: str) -> None:
    before = uids(wait_pods(api, namespace, *THREE))
    running.exit("digits-worker-1-0", signal=9, message="step 41\nstep 42")
    after = uids(wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-1"))
    assert after["digits-chief-0-0"] == before["digits-chief-0-0"]
    assert after["digits-worker-0-0"] == before["digits-worker-0-0"]
    found = wait_phase(api, namespace, "Running")
    assert restarts(found) == {"total": 1, "causes": {"Signal": 1}}
    first = found["status"]["lastFailure"]
    assert first["pod"] == "digits-worker-1-0"
    assert first["node"] == "node-1"
    assert first["exitCode"] == 137
    assert first["logTail"] == "step 41\nstep 42"


def test_a_chief_on_a_lost_node_blocks_its_successor_and_a_worker_does_not(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """Two jobs, so that the time after which a pod counts as lost is waited for once."""
    for name, lost in (("one", "one-worker-0-0"), ("two", "two-chief-0-0")):
        manifest = job(name)
        manifest["spec"]["checkpoint"]["saveTimeoutSeconds"] = 1
        api.create("dtjobs", namespace, manifest)
        wait_phase(api, namespace, "Running", name)
        auto_kubelet.hang(lost)
    for lost in ("one-worker-0-0", "two-chief-0-0"):
        api.delete("pods", namespace, lost)

    successor = api.wait_for("pods", namespace, "one-worker-0-1", lambda pod: pod is not None)
    assert successor is not None
    stuck = api.wait_for(
        "pods", namespace, "one-worker-0-0", lambda pod: pod and SERVING not in pod["metadata"]["labels"]
    )
    assert stuck is not None
    assert successor["spec"]["hostname"] == stuck["spec"]["hostname"]
    wait_phase(api, namespace, "Running", "one")

    api.wait_for(
        "dtjobs",
        namespace,
        "two",
        lambda f: f and f["status"].get("internal", {}).get("attempts", {}).get("exceptions", {}).get("chief-0") == 1,
    )
    assert api.get("pods", namespace, "two-chief-0-0")
    assert "two-chief-0-1" not in {pod["metadata"]["name"] for pod in api.list("pods", namespace)}

    auto_kubelet.release()
    two = ("two-chief-0-1", "two-worker-0-0", "two-worker-1-0")
    wait_pods(api, namespace, "one-chief-0-0", "one-worker-0-1", "one-worker-1-0", *two)
    wait_phase(api, namespace, "Running", "two")
