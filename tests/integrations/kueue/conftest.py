# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a control plane with the real Kueue and dtjob's definition, an operator, and a namespace with a queue.

The scheduler is the real one and the nodes are kwok's: pods are bound and run, and no container does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dtjob.api.job import Job
from dtjob.objects import shared
from tests.cluster.support.kueue import on_the_page
from tests.cluster.support.operator_process import OperatorProcess
from tests.integrations.kueue.manager import Kueue, NoKueue
from tests.integrations.kueue.nodes import Pods, bound, nodes
from tools import binaries
from tools.cluster.control_plane import ControlPlane, Options
from tools.cluster.rest import Api, Object
from tools.programs import CONTROL_PLANE

ROOT = Path(__file__).resolve().parents[3]
PLURALS = {
    "ResourceFlavor": "resourceflavors",
    "ClusterQueue": "clusterqueues",
    "WorkloadPriorityClass": "workloadpriorityclasses",
    "LocalQueue": "localqueues",
}
"""The kinds of the page's objects but the job."""


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """A control plane with dtjob's definition and nodes. Raises BinariesError without its programs."""
    programs = binaries.find((*CONTROL_PLANE, "kueue", "kube-scheduler", "kwok"))
    with ControlPlane(programs, Options(scheduler_arguments=())) as running:
        running.kubectl("apply", "-f", str(ROOT / "crds"))
        Api(running.kubeconfig).wait_established()
        with nodes(running, programs["kwok"]):
            yield running


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """See `control_plane`. Skips where its programs can be neither found nor built."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
            binaries.find((*CONTROL_PLANE, "kueue", "kube-scheduler", "kwok"))
    except binaries.BinariesError as error:
        pytest.skip(f"no Kueue or no Kubernetes programs: {str(error).splitlines()[0]}")
    with control_plane() as running:
        yield running


@pytest.fixture(scope="session")
def api(cluster: ControlPlane) -> Api:
    """Plain calls to the API server, and waiting by watch."""
    return Api(cluster.kubeconfig)


@pytest.fixture(scope="session")
def kueue(cluster: ControlPlane) -> Iterator[Kueue]:
    """The real Kueue, at work. Its log is shown where it does not come up."""
    try:
        running = Kueue(cluster)
        running.install()
    except NoKueue as error:
        pytest.skip(f"no Kueue: {error}")
    running.start()
    yield running
    running.stop()


def make(api: Api, namespace: str, page: dict[str, Object]) -> None:
    """Apply the page's objects but the job, and the claim that the operator would create."""
    page["LocalQueue"]["metadata"]["namespace"] = namespace
    for kind, plural in PLURALS.items():
        api.create(plural, namespace if kind == "LocalQueue" else None, page[kind])
    job = page["DistributedTrainingJob"]
    stored = Job.model_validate({**job, "metadata": {**job["metadata"], "namespace": namespace, "uid": "earlier"}})
    claim = shared.claim(stored)
    assert claim is not None
    bound(api, namespace, claim)


@pytest.fixture
def page(kueue: Kueue, api: Api, namespace: str, cluster: ControlPlane) -> Iterator[dict[str, Object]]:
    """The objects of docs/jobs/kueue.md by kind, all but the job applied: quota for three cores, in its namespace."""
    found = on_the_page()
    make(api, namespace, found)
    yield found
    for job in api.list("dtjobs", namespace):
        api.delete("dtjobs", namespace, job["metadata"]["name"])
    api.wait("workloads", namespace, lambda left: not left)
    for kind, plural in reversed(PLURALS.items()):
        name = found[kind]["metadata"]["name"]
        inside = namespace if kind == "LocalQueue" else None
        api.delete(plural, inside, name)
        api.wait_for(plural, inside, name, lambda one: one is None)


@pytest.fixture
def on_nodes(api: Api, namespace: str) -> Pods:
    """The test's pods on the nodes."""
    return Pods(api, namespace)


@pytest.fixture
def operator(cluster: ControlPlane, namespace: str, kueue: Kueue, tmp_path: Path) -> Iterator[OperatorProcess]:
    """`dtjob operator` for the test's namespace. Its log and Kueue's are printed where the test fails."""
    process = OperatorProcess(cluster.kubeconfig, namespace, tmp_path / "operator.log")
    process.start()
    yield process
    if process.running():
        process.kill()
    print(process.log.read_text())
    print(kueue.log)
