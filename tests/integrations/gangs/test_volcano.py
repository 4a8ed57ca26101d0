# SPDX-License-Identifier: Apache-2.0
"""Gangs by Volcano: its real scheduler and controllers on a real API server, and kube-scheduler for the evaluator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support import gangs
from tests.cluster.support.chart import wait_until
from tests.cluster.support.gangs import bound, gang_job, group_of, nodes_of
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.integrations.gangs.conftest import control_plane
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, ApiError, Object

PROVIDER = "Volcano"
QUEUES = "apis/scheduling.volcano.sh/v1beta1/queues"
TOOLS = ("vc-scheduler", "vc-controller-manager", "kube-scheduler")


def definitions() -> list[Path]:
    """Volcano's own: those of its jobs and queues are not recorded here."""
    return [binaries.source("vc-scheduler") / "config" / "crd" / "volcano" / "bases"]


def command(cluster: ControlPlane) -> list[list[str]]:
    kubeconfig, programs = f"--kubeconfig={cluster.kubeconfig}", cluster.programs
    alone = (kubeconfig, "--leader-elect=false")
    cluster.kubectl("create", "namespace", "volcano-system")
    return [
        [str(programs["vc-controller-manager"]), *alone, "--controllers=+pg-controller,+queue-controller"],
        [str(programs["vc-scheduler"]), *alone, f"--cache-dump-dir={cluster.directory}", "--plugins-dir="],
        [str(programs["kube-scheduler"]), *alone, "--secure-port=0"],
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with control_plane(TOOLS, definitions, command) as running:
        api = Api(running.kubeconfig)
        wait_until(lambda: state(api, "default") == "Open", "the default queue is open")
        yield running


def state(api: Api, queue: str) -> str | None:
    """The state of a Queue, None where there is none yet."""
    try:
        found: Object = api.call("GET", f"{QUEUES}/{queue}")
    except ApiError:
        return None
    return str(found.get("status", {}).get("state"))


def test_a_gang_of_four_waits_for_room_for_four(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    gangs.four_wait_for_room_for_four(api, namespace, kubelet, PROVIDER)


def test_two_jobs_never_hold_half_each(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    gangs.two_jobs_never_hold_half_each(api, namespace, kubelet, PROVIDER)


def test_a_gang_takes_the_share_of_its_queue(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """A queue of two CPUs holds no gang of three pods, whatever room there is on nodes."""
    queue: Object = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team-a"}}
    api.call("POST", QUEUES, {**queue, "spec": {"weight": 1, "capability": {"cpu": 2}}})
    wait_until(lambda: state(api, "team-a") == "Open", "the queue is open")
    with nodes_of(api, namespace) as nodes:
        nodes.add(3)
        api.create("dtjobs", namespace, gang_job(namespace, PROVIDER, workers=2, gang={"volcano": {"queue": "team-a"}}))
        pods = api.wait("pods", namespace, lambda pods: len(pods) == 3)
        wait_until(lambda: phase(api, namespace) == "Pending", "the PodGroup waits for its queue")
        assert bound(pods) == set()
        stored = api.call("GET", f"{QUEUES}/team-a")
        api.call("PUT", f"{QUEUES}/team-a", {**stored, "spec": {**stored["spec"], "capability": {"cpu": 3}}})
        api.wait("pods", namespace, lambda pods: len(bound(pods)) == 3)


def phase(api: Api, namespace: str) -> str | None:
    """The phase of the job's PodGroup, None before Volcano has said one."""
    found = group_of(api, namespace, PROVIDER)
    value: str | None = (found or {}).get("status", {}).get("phase")
    return value
