# SPDX-License-Identifier: Apache-2.0
"""The Python client does what docs/start/python.md has it do, against a real API server."""

import threading
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.node_streams import NodeStreams
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.page_commands import ROOT
from tests.unit.test_page_programs import programs
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

# tests/trainer/test_python_client.py does what the third one does.
WHOLE, FUNCTION, _ = programs(ROOT / "docs" / "start" / "python.md")


def test_the_programs_of_the_page_work(
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    shared_operator: OperatorProcess,
    node_kubelet: Kubelet,
    node: NodeStreams,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (node.directory / "model.keras").write_text("a model")
    node.logs = defaultdict(lambda: ["hello"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    claim = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}}
    Path("job.yaml").write_text(yaml.safe_dump(job("digits", checkpoint=claim)))

    def finish(name: str, pod: str) -> None:
        wait_phase(api, namespace, "Running", name)
        node_kubelet.exit(pod, 0)

    names: dict[str, object] = {}
    in_namespace = WHOLE.replace('"team"', repr(namespace))
    with_image = FUNCTION.replace("workers=", 'image="dtjob-trainer:dev", workers=')  # the operator here has no default
    for name, pod, code in (("digits", "digits-chief-0-0", in_namespace), ("train", "train-worker-0-0", with_image)):
        Path(f"{name}.py").write_text(code)
        ending = threading.Thread(target=finish, args=(name, pod), daemon=True)
        ending.start()
        exec(compile(code, f"{tmp_path}/{name}.py", "exec"), names)
        ending.join()
    assert Path("out/model.keras").read_text() == "a model"
    assert "worker-0 | hello" in capsys.readouterr().out
    wait_phase(api, namespace, "Succeeded", "train")
    assert "import keras" in api.get("configmaps", namespace, "train-source")["data"]["train.py"]
