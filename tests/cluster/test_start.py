# SPDX-License-Identifier: Apache-2.0
"""An operator to which something is not ready at its start, or fails later, is at work as soon as that has passed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support.api_proxy import ApiProxy, Call
from tests.cluster.support.gangs import COSCHEDULING, gang_job, serve
from tests.cluster.support.jobs import job
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

JOBS = "distributedtrainingjobs"


@pytest.fixture
def starting(proxy: ApiProxy, namespace: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    """The operator, which the test starts."""
    process = OperatorProcess(proxy.kubeconfig, namespace, tmp_path / "operator.log", resync_seconds=1)
    yield process
    if process.running():
        process.kill()
    print(process.log.read_text())


@pytest.fixture(scope="module")
def coscheduling(cluster: ControlPlane) -> Iterator[None]:
    name = serve(cluster, COSCHEDULING.read_text())
    yield
    cluster.kubectl("delete", "crd", name)


@pytest.mark.usefixtures("coscheduling")
def test_a_job_that_a_failed_resync_has_found_is_not_forgotten(
    api: Api, namespace: str, proxy: ApiProxy, starting: OperatorProcess
) -> None:
    """It is in the store by then, and no later resync finds anything new about it. No watch tells of it here."""
    failed: list[Call] = []

    def no_watches_and_one_list_of_pod_groups_fails(call: Call) -> int | None:
        if call.resource == "podgroups" and not failed:
            failed.append(call)
            return 503
        return 503 if call.resource == JOBS and call.by_kopf else None

    proxy.rule = no_watches_and_one_list_of_pod_groups_fails
    starting.start()
    starting.wait_log("is watching", timeout=180)
    api.create("dtjobs", namespace, gang_job(namespace, "Coscheduling"))
    api.wait("pods", namespace, lambda pods: len(pods) == 4)
    assert failed


def test_an_api_of_others_that_is_away_holds_up_no_job_that_has_nothing_to_do_with_it(
    api: Api, namespace: str, proxy: ApiProxy, starting: OperatorProcess
) -> None:
    """Kueue's API answers with 503 while its conversion webhook is not ready, or its extension API server is away."""
    proxy.rule = lambda call: 503 if "/apis/kueue.x-k8s.io/" in call.path else None
    api.create("dtjobs", namespace, job())
    starting.start()
    api.wait("pods", namespace, lambda pods: len(pods) == 3, timeout=180)
    assert any(status == 503 for _, status in proxy.calls)
