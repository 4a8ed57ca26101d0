# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the cluster tier: a real API server for the tier's tests, a namespace for each test.

    def test_pods_appear(api, namespace, kubectl, kubelet, operator_process ...):
        kubectl("apply", "-f", "-", stdin=manifest)         # in the test's namespace
        api.wait("pods", namespace, lambda pods: len(pods) == 4)
        kubelet.run("digits-chief-0-0")

`kubelet` answers when told; `auto_kubelet` runs every pod at once. See `rest.py` and `kubelet.py` for what they can do.
"""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.support.api_proxy import ApiProxy
from tests.cluster.support.chart import NAMESPACE, RELEASE, AuditedControlPlane, Helm, InstalledOperator
from tests.cluster.support.definitions import Change, Install, install, name_in
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.node_streams import NodeStreams
from tests.cluster.support.operator_process import OperatorProcess
from tools import binaries
from tools.chart import find_helm
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT = 240.0
"""Seconds that an operator may take to start: its imports took a whole minute where fifty processes shared a core."""
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A control plane with dtjob's CRD. Skips where its programs can be neither found nor built."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes, and says so
            programs = binaries.find()
    except binaries.BinariesError as error:
        pytest.skip(f"no Kubernetes programs: {str(error).splitlines()[0]}")
    with ControlPlane(programs) as running:
        running.kubectl("apply", "-f", str(ROOT / "crds"))
        Api(running.kubeconfig).wait_established()
        yield running


@pytest.fixture(scope="session")
def helm_program() -> Path:
    """helm; skips where it can be neither found nor built."""
    program = find_helm()
    if program is None:
        pytest.skip("no helm: it is neither on the PATH nor could it be built (DTJOB_HELM may name it)")
    return program


@pytest.fixture(scope="package")
def api(cluster: ControlPlane) -> Api:
    """Plain calls to the API server, and waiting by watch."""
    return Api(cluster.kubeconfig)


@pytest.fixture
def proxy(cluster: ControlPlane, tmp_path: Path) -> Iterator[ApiProxy]:
    """What a test puts between the API server and whoever uses `proxy.kubeconfig`."""
    with ApiProxy(cluster.kubeconfig, tmp_path) as running:
        yield running


@pytest.fixture
def kubectl(cluster: ControlPlane, namespace: str) -> Kubectl:
    """kubectl in the test's namespace: `kubectl("get", "pods", check=False, stdin=None)`."""

    def run(*arguments: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        return cluster.kubectl("--namespace", namespace, *arguments, stdin=stdin, check=check)

    return run


@pytest.fixture
def kubelet(api: Api, namespace: str) -> Iterator[Kubelet]:
    """Plays the node: pods get the statuses that the test asks for; deleted pods go."""
    with Kubelet(api, namespace) as running:
        yield running


@pytest.fixture
def auto_kubelet(api: Api, namespace: str) -> Iterator[Kubelet]:
    """As `kubelet`, and every new pod runs at once."""
    with Kubelet(api, namespace, auto=True) as running:
        yield running


@pytest.fixture
def node_kubelet(api: Api, namespace: str) -> Iterator[Kubelet]:
    """As `auto_kubelet`, on a node whose server the API server reaches: that of `node`."""
    with Kubelet(api, namespace, auto=True, node=f"node-of-{namespace}") as running:
        yield running
    api.delete("nodes", None, running.node)


@pytest.fixture
def node(cluster: ControlPlane, api: Api, node_kubelet: Kubelet, tmp_path: Path) -> Iterator[NodeStreams]:
    """Logs, files and ports of the pods of `node_kubelet`. They have `node.directory` mounted, which is empty."""
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    with NodeStreams(cluster, api, node_kubelet.node, directory) as running:
        yield running


@pytest.fixture
def operator(
    cluster: ControlPlane,
    operators_of_all: list[OperatorProcess],
    namespace: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[OperatorProcess]:
    """`dtjob operator` for the test's namespace, running, and no other. Its log is printed where the test fails."""
    marker = request.node.get_closest_marker("resync_seconds")
    resync = float(marker.args[0]) if marker else 180.0
    process = OperatorProcess(cluster.kubeconfig, namespace, tmp_path / "operator.log", resync)
    with contextlib.ExitStack() as frozen:
        for other in operators_of_all:
            frozen.enter_context(other.frozen())
        process.start()
        process.wait_log("is watching", START_TIMEOUT)
        yield process
        if process.running():
            process.kill()
    _show(process.log.read_text())


@pytest.fixture(scope="package")
def operators_of_all() -> list[OperatorProcess]:
    """Those of `operator_of_all` that run: one at most."""
    return []


@pytest.fixture(scope="module")
def operator_of_all(
    cluster: ControlPlane, operators_of_all: list[OperatorProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """What `shared_operator` shares."""
    process = OperatorProcess(cluster.kubeconfig, None, tmp_path_factory.mktemp("operator") / "operator.log")
    process.start()
    process.wait_log("is watching", START_TIMEOUT)
    operators_of_all.append(process)
    yield process
    operators_of_all.remove(process)
    process.kill()


@pytest.fixture
def shared_operator(operator_of_all: OperatorProcess, api: Api, namespace: str) -> Iterator[OperatorProcess]:
    """`dtjob operator` for all namespaces, one for all tests of a module: starting it takes longer than most of them.
    What it logged during the test is printed where that fails; the test's jobs are deleted."""
    assert operator_of_all.running(), operator_of_all.log.read_text()
    begun = operator_of_all.log.stat().st_size
    yield operator_of_all
    for job in api.list("dtjobs", namespace):
        api.delete("dtjobs", namespace, job["metadata"]["name"])
    _show(operator_of_all.log.read_bytes()[begun:].decode())


def _show(log: str) -> None:
    """Print what an operator logged during a test, which pytest shows with a failure only; fail if it met a bug of
    ours. It goes on after one, so that the test itself may pass."""
    print(log)
    assert "a bug in dtjob" not in log


@pytest.fixture
def other_definition(api: Api) -> Iterator[Install]:
    """Installs dtjob's definition under a group of its own after a change; gives that group. Removed afterwards."""
    groups: list[str] = []

    def made(change: Change) -> str:
        groups.append(install(api, change))
        return groups[-1]

    yield made
    for group in groups:
        api.delete("customresourcedefinitions", None, name_in(group))


@pytest.fixture(scope="package")
def audited_cluster(helm_program: Path) -> Iterator[AuditedControlPlane]:
    """A control plane where only the chart installs dtjob; see `AuditedControlPlane`."""
    try:
        programs = binaries.find()
    except binaries.BinariesError as error:
        pytest.skip(f"no Kubernetes programs: {str(error).splitlines()[0]}")
    with AuditedControlPlane(programs) as running:
        running.kubectl("create", "namespace", NAMESPACE)
        yield running


@pytest.fixture
def helm(helm_program: Path, cluster: AuditedControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """helm for a module whose `cluster` is audited_cluster; uninstalls the release afterwards."""
    run = Helm(helm_program, cluster, tmp_path)
    yield run
    run("uninstall", RELEASE, check=False)


@pytest.fixture
def installed(cluster: AuditedControlPlane, api: Api, tmp_path: Path) -> Iterator[InstalledOperator]:
    """The release's operator; the test starts it once the chart is installed."""
    process = InstalledOperator(cluster, api, tmp_path)
    yield process
    if process.running():
        process.terminate()  # gives the lease back, so that the next test's need not wait for it
    if process.log.exists():
        print(process.log.read_text())
