# SPDX-License-Identifier: Apache-2.0
"""The operator's watches on a real API server, when what they watch goes and comes back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import ROOT
from tests.cluster.support.api_proxy import ApiProxy, Call
from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import CRD, Api

TASKS = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")


@pytest.fixture
def definition(cluster: ControlPlane, api: Api) -> Iterator[None]:
    """dtjob's definition is there again afterwards, whatever the test did."""
    yield
    cluster.kubectl("apply", "-f", str(ROOT / "crds"))
    api.wait_established()


@pytest.mark.resync_seconds(3600)
@pytest.mark.usefixtures("definition")
def test_jobs_are_watched_again_once_a_definition_that_was_deleted_is_back(
    cluster: ControlPlane, api: Api, namespace: str, operator: OperatorProcess
) -> None:
    """While it is away an API server names no such kind, and what watches begun then would never hear of jobs."""
    api.create("dtjobs", namespace, job("before"))
    api.wait_for("dtjobs", namespace, "before", lambda found: found and found.get("status"))
    cluster.kubectl("delete", "crd", CRD)
    operator.wait_log("the watches ended")
    operator.wait_log("the watches cannot begin")
    cluster.kubectl("apply", "-f", str(ROOT / "crds"))
    api.wait_established()
    for name in ("first", "second"):  # the first may be found by the resync before the watches begin
        api.create("dtjobs", namespace, job(name))
        api.wait_for("dtjobs", namespace, name, lambda found: found and found.get("status"), timeout=120)


@pytest.mark.resync_seconds(3600)
def test_a_pod_that_went_while_no_watch_could_tell_is_missed_soon(
    cluster: ControlPlane, api: Api, namespace: str, kubelet: Kubelet, operator: OperatorProcess
) -> None:
    """A new API server does not know what came before it, so that no watch continues: pods are listed again."""
    api.create("dtjobs", namespace, job())
    all_seen = {"chief": {"replicas": 1, "pending": 1}, "worker": {"replicas": 2, "pending": 2}}
    api.wait_for(
        *("dtjobs", namespace, "digits"),
        lambda found: found and found.get("status", {}).get("replicaStatuses") == all_seen,
    )
    with operator.frozen():
        cluster.stop_api()
        cluster.start_api()
        api.delete("pods", namespace, TASKS[2], grace=0)
        api.wait("pods", namespace, lambda found: TASKS[2] not in found)
    wait_pods(api, namespace, *TASKS[:2], "digits-worker-1-1")


def test_nothing_is_made_for_a_job_that_went_after_it_was_listed_and_before_it_was_watched(
    api: Api, namespace: str, proxy: ApiProxy, tmp_path: Path
) -> None:
    """Its Service is watched and goes with it. The job's status has nothing new to say."""
    jobs = "distributedtrainingjobs"

    def one_list_no_watch_and_no_pods(call: Call) -> int | None:
        if (call.method, call.resource) == ("POST", "pods"):
            return 403
        listed = any(status == 200 for one, status in proxy.calls if (one.method, one.resource) == ("GET", jobs))
        return 503 if call.resource == jobs and call.method == "GET" and (call.by_kopf or listed) else None

    def written(begun: int) -> dict[str, set[int]]:
        written: dict[str, set[int]] = {}
        for call, status in proxy.calls[begun:]:
            if call.method != "GET" and call.resource != "events":
                written.setdefault(call.resource, set()).add(status)
        return written

    operator = OperatorProcess(proxy.kubeconfig, namespace, tmp_path / "operator.log", resync_seconds=3600)
    proxy.rule = one_list_no_watch_and_no_pods
    api.create("dtjobs", namespace, job())
    operator.start()
    try:
        api.wait_for(
            "dtjobs",
            namespace,
            "digits",
            lambda found: found and found.get("status", {}).get("reason") == "CannotCreate",
        )
        begun = len(proxy.calls)
        api.delete("dtjobs", namespace, "digits")
        of_status = f"{jobs}/status"
        wait_until(lambda: 404 in written(begun).get(of_status, ()), "the operator looks whether the job is there")
        assert written(begun).keys() == {of_status}
    finally:
        operator.kill()
        print(operator.log.read_text())
