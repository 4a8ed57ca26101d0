# SPDX-License-Identifier: Apache-2.0
"""The commands that read logs, files and ports of pods, through a real API server and with the rights of an editor."""

import http.server
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import dtjob as sdk
from dtjob.client.cluster import connect
from dtjob.client.verbs.reports import read_reports
from tests.cluster.support.chart import wait_until
from tests.cluster.support.command_line import Run, command_line
from tests.cluster.support.editor import editor
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.node_streams import NodeStreams
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_progress import ServedStatus
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}}
FILES = {"model.keras": "a model", "ckpt-7.index": "7", "events/train/events.out": "events"}


@pytest.fixture(autouse=True)
def _files(node: NodeStreams) -> None:
    for name, text in FILES.items():
        file = node.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def served() -> Iterator[ServedStatus]:
    server = ServedStatus()
    yield server
    server.close()


@pytest.fixture
def dtjob(cluster: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> Run:
    return command_line(cluster, api, namespace, tmp_path)


@pytest.fixture
def digits(
    api: Api, namespace: str, shared_operator: OperatorProcess, node: NodeStreams, served: ServedStatus
) -> dict[str, object]:
    """A job that runs. Its supervisors say what `served` says."""
    node.ports[served.port] = served.port
    made = job("digits", checkpoint=CLAIM, network={"statusPort": served.port})
    api.create("dtjobs", namespace, made)
    running = wait_phase(api, namespace, "Running")
    for task in ("chief-0", "worker-0", "worker-1"):
        node.logs[f"digits-{task}-0"] = [f"{task} says hello", f"{task} says bye"]
    return running


def test_logs_files_and_reports_are_read(
    dtjob: Run,
    api: Api,
    namespace: str,
    digits: dict[str, object],
    node: NodeStreams,
    served: ServedStatus,
    tmp_path: Path,
) -> None:
    served.status = {"attempt": 0, "state": "training", "step": 7, "stepsPerSecond": 2.5}
    lines = dtjob("logs", "digits").stdout.splitlines()
    assert sorted(lines)[0] == "chief-0      | chief-0 says bye"
    assert len(lines) == 6
    assert dtjob("logs", "digits", "--task", "worker-1").stdout.count("worker-1 says") == 2
    program = "import sys; print('out'); print('error', file=sys.stderr); sys.exit(3)"
    ran = dtjob("exec", "digits", "--task", "worker-1", "--", "python3", "-c", program)
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "out\n", "error\n")
    assert dtjob("fetch", "digits", "--list").stdout.split()[1::2] == sorted(FILES)
    assert dtjob("fetch", "digits", "-o", "out").stdout == "out/model.keras\n"
    assert (tmp_path / "out" / "model.keras").read_text() == "a model"
    assert dtjob("fetch", "digits", "events", "-o", "out").stdout == "out/events/train/events.out\n"
    nothing = dtjob("fetch", "digits", "best")
    assert (nothing.returncode, nothing.stderr) == (
        3,
        "digits: looking for its checkpoints\n"
        "dtjob: digits: best: no such file in /checkpoints; there are ckpt-7.index, events, model.keras\n",
    )
    assert not [pod for pod in api.list("pods", namespace) if "helper" in pod["metadata"]["name"]]
    connected = connect(str(tmp_path / "editor.kubeconfig"))
    reports, why = read_reports(connected, digits, api.list("pods", namespace))
    assert ({task: report["step"] for task, report in reports.items()}, why) == (
        {"chief-0": 7, "worker-0": 7, "worker-1": 7},
        "",
    )
    assert dtjob("debug-bundle", "digits", "-o", "bundle.tar.gz").returncode == 0
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        found = {name: archive.extractfile(name) for name in archive.getnames()}
    assert {"digits/logs/digits-chief-0-0.log", "digits/metrics/digits-worker-1-0.txt"} <= set(found)
    assert not [name for name in found if name.endswith(".error")]
    node.ports.clear()
    reports, why = read_reports(connected, digits, api.list("pods", namespace))
    assert (reports, "connection refused" in why) == ({}, True)


def test_logs_are_followed_to_the_end_of_the_job(
    cluster: ControlPlane, api: Api, namespace: str, digits: dict[str, object], node_kubelet: Kubelet, tmp_path: Path
) -> None:
    kubeconfig = editor(cluster, api, namespace, tmp_path)
    command = [sys.executable, "-m", "dtjob", "logs", "digits", "-f", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        lines = [following.stdout.readline() for _ in range(6)]
        node_kubelet.exit("digits-chief-0-0", 0)
        said = following.stderr.read()
    assert following.returncode == 0
    assert sorted(lines)[0] == "chief-0      | chief-0 says bye\n"
    assert said.splitlines()[-1].startswith("digits: Succeeded")


def listens_to_ctrl_c() -> None:
    """Let a child be interrupted, also if a shell started these tests in the background: it ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_tensorboard_is_forwarded_from_its_first_answer_until_it_is_interrupted(
    cluster: ControlPlane, api: Api, namespace: str, digits: dict[str, object], node: NodeStreams, tmp_path: Path
) -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"page {self.path}".encode())

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    board = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=board.serve_forever, daemon=True).start()
    kubeconfig = editor(cluster, api, namespace, tmp_path)
    command = [sys.executable, "-m", "dtjob", "tensorboard", "digits", "--port", "0", "--kubeconfig", str(kubeconfig)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=listens_to_ctrl_c) as forwarding:
        assert forwarding.stdout is not None
        wait_until(lambda: 6006 in node.refused, "a question to TensorBoard while it starts")
        assert not select.select([forwarding.stdout], [], [], 0)[0], "the address is printed and does not answer"
        node.ports[6006] = board.server_port
        address = forwarding.stdout.readline().split()[-1]
        for path in ("a", "b"):
            with urlopen(f"{address}{path}") as answer:
                assert answer.read() == f"page /{path}".encode()
        forwarding.send_signal(signal.SIGINT)
        _, said = forwarding.communicate(timeout=60)
    board.shutdown()
    board.server_close()
    assert (forwarding.returncode, said) == (130, "digits: looking for its checkpoints\n")
    assert not [pod for pod in api.list("pods", namespace) if "helper" in pod["metadata"]["name"]]


def test_tensorboard_that_ends_by_itself_ends_the_command(
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    digits: dict[str, object],
    node: NodeStreams,
    node_kubelet: Kubelet,
    tmp_path: Path,
) -> None:
    kubeconfig = editor(cluster, api, namespace, tmp_path)
    command = [sys.executable, "-m", "dtjob", "tensorboard", "digits", "--port", "0", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as forwarding:
        assert forwarding.stdout is not None
        wait_until(lambda: 6006 in node.refused, "a question to TensorBoard while it starts")
        (pod,) = (one["metadata"]["name"] for one in api.list("pods", namespace) if "helper" in one["metadata"]["name"])
        node.logs[pod] = ["No module named tensorboard"]
        node_kubelet.exit(pod, 1)
        _, said = forwarding.communicate(timeout=120)
    assert forwarding.returncode == 1
    assert said.splitlines()[1] == "dtjob: TensorBoard has ended: failed (1): No module named tensorboard"
    assert not [one for one in api.list("pods", namespace) if "helper" in one["metadata"]["name"]]


def test_tensorboard_of_a_job_that_wrote_nothing_for_it_names_the_field(
    dtjob: Run, api: Api, namespace: str, digits: dict[str, object], tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "checkpoints" / "events")
    done = dtjob("tensorboard", "digits", "--port", "0")
    assert (done.returncode, done.stderr) == (
        3,
        "digits: looking for its checkpoints\n"
        "dtjob: digits: has written nothing for TensorBoard; to see a job there, set `spec.tensorBoard: {}` before it "
        "starts\n",
    )
    assert not [pod for pod in api.list("pods", namespace) if "helper" in pod["metadata"]["name"]]


def train(epochs: int) -> None:
    print(epochs)


def test_the_python_client_does_the_same(
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    shared_operator: OperatorProcess,
    node: NodeStreams,
    node_kubelet: Kubelet,
    served: ServedStatus,
    tmp_path: Path,
) -> None:
    node.logs.update({f"digits-{task}-0": ["hello"] for task in ("chief-0", "worker-0", "worker-1")})
    client = sdk.Client(kubeconfig=editor(cluster, api, namespace, tmp_path))
    model = sdk.Job.model_validate(job("digits", checkpoint=CLAIM, network={"statusPort": served.port}))
    made = client.run(model)
    assert made.wait("Running", timeout=120).phase == "Running"
    assert sorted(made.logs()) == ["chief-0 | hello", "worker-0 | hello", "worker-1 | hello"]
    assert made.manifest.spec.network.status_port == served.port
    node_kubelet.exit("digits-chief-0-0", 0)
    assert made.wait(timeout=120).phase == "Succeeded"
    assert made.fetch(directory=tmp_path / "out") == [tmp_path / "out" / "model.keras"]
    assert [one.name for one in client.list()] == ["digits"]
    made.delete()
    api.wait("dtjobs", namespace, lambda jobs: not jobs)
    with pytest.raises(sdk.NotFound):
        client.get("digits")


def test_the_python_client_sends_a_function_and_reads_its_metrics(
    cluster: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    client = sdk.Client(kubeconfig=editor(cluster, api, namespace, tmp_path))
    sent = client.train(train, {"epochs": 3}, image="registry.example/a:1", claim="data", workers=2)
    files = api.get("configmaps", namespace, "train-source")
    assert "def train(epochs: int)" in files["data"]["train.py"]
    assert files["metadata"]["ownerReferences"][0]["name"] == sent.name == "train"
    progress = {"step": 7, "metrics": [{"name": "loss", "value": "0.5"}]}
    api.patch("dtjobs", namespace, "train", {"status": {"phase": "Running", "progress": progress}}, "status")
    assert sent.metrics() == {"step": 7.0, "loss": 0.5}
