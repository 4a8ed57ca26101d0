# SPDX-License-Identifier: Apache-2.0
"""A quota too small for a job: how often it is asked, what the status says, and what comes once it is raised."""

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dtjob.local.processes.addresses import free_ports
from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

WORKERS, ALLOWED = 60, 20
RETRY_SECONDS = 15


class Counted:
    """An operator whose calls are counted."""

    def __init__(self, process: OperatorProcess, port: int) -> None:
        self.process, self._url = process, f"http://127.0.0.1:{port}/metrics"

    def refused(self) -> int:
        """POSTs of pods that were answered with 403."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self._url, timeout=10) as answer:
            text = answer.read().decode()
        wanted = {"method": "POST", "resource": "pods", "code": "403"}
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        return int(sum(s.value for s in samples if s.name == "dtjob_api_requests_total" and s.labels == wanted))


@pytest.fixture
def counted(cluster: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Counted]:
    (port,) = free_ports(1)
    log, more = tmp_path / "operator.log", (f"--metrics=127.0.0.1:{port}",)
    process = OperatorProcess(cluster.kubeconfig, namespace, log, more=more)
    process.start()
    yield Counted(process, port)
    process.kill()
    print(log.read_text())


def quota(pods: int) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": str(pods)}},
    }


def test_a_quota_is_asked_by_one_pod_now_and_then(
    counted: Counted, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("resourcequotas", namespace, quota(ALLOWED))
    api.wait_for("resourcequotas", namespace, "small", lambda found: found and found.get("status", {}).get("used"))
    manifest = job()
    manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = WORKERS
    api.create("dtjobs", namespace, manifest)
    found = api.wait_for(
        "dtjobs", namespace, "digits", lambda f: f and "exceeded quota" in f.get("status", {}).get("message", "")
    )
    assert found is not None
    assert found["status"]["reason"] == "CannotCreate"
    assert found["status"]["message"].count("exceeded quota") == 1
    assert f"({WORKERS - ALLOWED} more such pods wait)" in found["status"]["message"]
    api.wait(
        "pods", namespace, lambda pods: sum(p["status"].get("phase") == "Running" for p in pods.values()) == ALLOWED
    )
    began, before = time.monotonic(), counted.refused()
    assert before <= WORKERS  # the batch in which the quota was met
    for number in range(3):  # 60 events
        for pod in api.list("pods", namespace):
            pod["status"] |= {"podIP": f"10.0.0.{number}", "podIPs": [{"ip": f"10.0.0.{number}"}]}
            api.replace("pods", namespace, pod, "status")
    api.wait_for("dtjobs", namespace, "digits", lambda f: f and f["status"].get("ready") == f"{ALLOWED}/{WORKERS + 1}")
    wait_until(lambda: counted.refused() > before, "the quota is asked again")
    print(
        f"refused POSTs: {before} at first, {counted.refused() - before} during 60 events and until it was asked again"
    )
    assert counted.refused() - before <= 1 + (time.monotonic() - began) / RETRY_SECONDS

    api.replace(
        "resourcequotas",
        namespace,
        {**api.get("resourcequotas", namespace, "small"), "spec": {"hard": {"pods": "100"}}},
    )
    api.wait("pods", namespace, lambda pods: len(pods) == WORKERS + 1)
    wait_phase(api, namespace, "Running")
    conditions = {c["type"]: c["status"] for c in api.get("dtjobs", namespace, "digits")["status"]["conditions"]}
    assert conditions["Blocked"] == "False"
