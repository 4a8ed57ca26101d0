# SPDX-License-Identifier: Apache-2.0
"""The operator killed, away, or cut off from the API server in the middle of everything: nothing doubled, nothing
lost."""

from collections.abc import Iterator

import pytest

from tests.cluster.support.births import Births
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

WORKERS = 24


@pytest.fixture
def births(api: Api, namespace: str) -> Iterator[Births]:
    watcher = Births(api, namespace)
    yield watcher
    watcher.doubled()


def test_an_operator_killed_while_it_creates_pods_creates_each_pod_once(
    operator: OperatorProcess, api: Api, namespace: str, births: Births, auto_kubelet: Kubelet
) -> None:
    manifest = job()
    manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = WORKERS
    api.create("dtjobs", namespace, manifest)
    for some in (1, 5, 12):
        api.wait("pods", namespace, lambda pods, some=some: len(pods) >= some)
        operator.restart()
    found = wait_phase(api, namespace, "Running")
    assert len(api.list("pods", namespace)) == WORKERS + 1
    assert births.doubled() == []
    assert found["status"]["restarts"]["total"] == 0


def test_an_operator_killed_while_it_restarts_a_group_counts_one_restart(
    operator: OperatorProcess, api: Api, namespace: str, births: Births, auto_kubelet: Kubelet
) -> None:
    manifest = job(program=False)
    manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = WORKERS
    api.create("dtjobs", namespace, manifest)
    wait_phase(api, namespace, "Running")
    auto_kubelet.exit("digits-worker-3-0", 137, "OOMKilled")
    for some in (1, 8):
        api.wait("pods", namespace, lambda pods, some=some: sum(name.endswith("-1") for name in pods) >= some)
        operator.restart()
    names = {f"digits-worker-{index}-1" for index in range(WORKERS)} | {"digits-chief-0-1"}
    wait_pods(api, namespace, *names)
    found = wait_phase(api, namespace, "Running")
    assert found["status"]["restarts"] == {"total": 1, "causes": {"OOMKilled": 1}}
    assert births.doubled() == []


def test_a_job_deleted_while_the_operator_is_away_goes_at_once(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    operator.kill()
    api.delete("dtjobs", namespace, "digits")
    api.wait_for("dtjobs", namespace, "digits", lambda found: found is None)
    api.wait("pods", namespace, lambda pods: not pods)


def test_an_api_outage_is_waited_out(
    operator: OperatorProcess, cluster: ControlPlane, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    cluster.stop_api()
    cluster.start_api()
    assert operator.running()
    auto_kubelet.exit("digits-worker-0-0", 1)
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-1", "digits-worker-1-0")
    wait_phase(api, namespace, "Running")


def test_sigterm_ends_the_operator_with_exit_code_0(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    assert operator.terminate() == 0
