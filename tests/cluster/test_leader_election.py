# SPDX-License-Identifier: Apache-2.0
"""Two operators with a real lease: one works, the other takes over, and nothing is done twice."""

import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dtjob.local.processes.addresses import free_ports
from tests.cluster.support.births import Births
from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

SECONDS = 9
"""The lease's duration here; long enough that a busy machine loses no leader in six of them."""
WORKERS = 12


class Pair:
    """Two operators of one namespace, started at once: `leader` is the one that leads, `standby` waits."""

    def __init__(self, cluster: ControlPlane, api: Api, namespace: str, directory: Path) -> None:
        self._api, self._namespace = api, namespace
        self.ports = free_ports(2)
        both = [
            OperatorProcess(
                cluster.kubeconfig,
                namespace,
                directory / f"operator-{port}.log",
                more=(
                    "--leader-election",
                    f"--lease-namespace={namespace}",
                    f"--lease-seconds={SECONDS}",
                    f"--liveness=127.0.0.1:{port}",
                ),
            )
            for port in self.ports
        ]
        for process in both:
            process.start()
        self.first = self.wait_holder(bool)
        # The standby may say whose the lease is before that one has said that it leads.
        leads = f"leading as {self.first}"
        wait_until(lambda: any(leads in process.log.read_text() for process in both), "one says that it leads")
        self.leader, self.standby = sorted(both, key=lambda process: leads not in process.log.read_text())
        self.standby.wait_log("is held by")

    def wait_holder(self, fits: Callable[[str], object]) -> str:
        """Wait until the lease's holder fits; returns it."""

        def holds(lease: Object | None) -> bool:
            return lease is not None and bool(fits(lease["spec"]["holderIdentity"]))

        lease = self._api.wait_for("leases", self._namespace, "dtjob", holds)
        assert lease is not None
        return str(lease["spec"]["holderIdentity"])


@pytest.fixture
def pair(cluster: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> Iterator[Pair]:
    running = Pair(cluster, api, namespace, tmp_path)
    yield running
    for process in (running.leader, running.standby):
        if process.running():
            process.kill()
        print(process.log.read_text())


def test_the_leader_works_and_the_standby_lives_until_sigterm(
    pair: Pair, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    for port in pair.ports:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.read() == b"ok\n"
    assert "is watching" in pair.leader.log.read_text()
    assert "is watching" not in pair.standby.log.read_text()
    assert pair.standby.terminate() == 0
    assert pair.wait_holder(bool) == pair.first


def test_a_killed_leader_is_followed_when_its_lease_expires(
    pair: Pair, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    births = Births(api, namespace)
    manifest = job()
    manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = WORKERS
    api.create("dtjobs", namespace, manifest)
    api.wait("pods", namespace, lambda pods: len(pods) >= 4)
    pair.leader.kill()
    pair.wait_holder(lambda holder: holder != pair.first)
    found = wait_phase(api, namespace, "Running")
    assert len(api.list("pods", namespace)) == WORKERS + 1
    assert births.doubled() == []
    assert found["status"]["restarts"]["total"] == 0


def test_a_leader_that_gets_sigterm_releases_its_lease(
    pair: Pair, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    births = Births(api, namespace)
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    assert pair.leader.terminate() == 0
    # Given back before it ended, so that nobody has to wait for it to expire.
    assert "is released" in pair.leader.log.read_text()
    pair.wait_holder(lambda holder: holder not in (pair.first, ""))
    auto_kubelet.exit("digits-worker-0-0", 1)
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-1", "digits-worker-1-0")
    assert wait_phase(api, namespace, "Running")["status"]["restarts"]["total"] == 1
    assert births.doubled() == []


def test_a_leader_that_was_frozen_waits_in_a_new_program_of_the_same_process(
    pair: Pair, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    births = Births(api, namespace)
    manifest = job()
    manifest["spec"]["replicaSpecs"]["worker"]["replicas"] = WORKERS
    api.create("dtjobs", namespace, manifest)
    api.wait("pods", namespace, lambda pods: len(pods) >= 4)
    pair.leader.signal(signal.SIGSTOP)
    pair.wait_holder(lambda holder: holder != pair.first)
    wait_phase(api, namespace, "Running")
    pair.leader.signal(signal.SIGCONT)
    # An end of the process would be a crash to its kubelet, which waits up to five minutes before each next start.
    pair.leader.wait_log("is lost")
    wait_until(lambda: "is held by" in pair.leader.log.read_text().rpartition("is lost")[2], "it waits for the lease")
    assert pair.leader.running()
    assert births.doubled() == []
    pair.standby.kill()
    wait_until(lambda: "is watching" in pair.leader.log.read_text().rpartition("is lost")[2], "it leads again")
