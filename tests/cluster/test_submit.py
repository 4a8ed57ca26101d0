# SPDX-License-Identifier: Apache-2.0
"""`dtjob submit` against a real API server, with the rights of a namespace's editor."""

from pathlib import Path

import pytest

from tests.cluster.support.command_line import Run, command_line
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, ApiError


@pytest.fixture
def dtjob(cluster: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> Run:
    (tmp_path / "train.py").write_text("print(1)\n")
    return command_line(cluster, api, namespace, tmp_path)


def test_a_script_becomes_a_job_that_owns_its_files(dtjob: Run, api: Api, namespace: str) -> None:
    done = dtjob("submit", "train.py", "--workers", "2", "--claim", "data", "--image", "registry.example/a:1")
    assert (done.returncode, done.stdout) == (0, f"train is submitted to namespace {namespace}\n"), done.stderr
    job = api.get("dtjobs", namespace, "train")
    files = api.get("configmaps", namespace, "train-source")
    assert files["data"] == {"train.py": "print(1)\n"}
    assert files["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    again = dtjob("submit", "train.py", "--workers", "2")
    assert again.returncode == 3
    assert f"dtjob: the namespace {namespace} has a job train; choose another name" in again.stderr
    assert dtjob("submit", "train.py", "--name", "other", "--source", ".").returncode == 0
    assert list(api.get("configmaps", namespace, "other-source")["binaryData"]) == ["source.tar.gz"]


def test_a_job_that_is_refused_leaves_no_files(dtjob: Run, api: Api, namespace: str) -> None:
    api.create(
        "resourcequotas",
        namespace,
        {
            "metadata": {"name": "none"},
            "spec": {"hard": {"count/distributedtrainingjobs.training.dtjob.dev": "0"}},
        },
    )
    refused = dtjob("submit", "train.py")
    assert refused.returncode == 3, refused.stdout
    assert "quota: none" in refused.stderr.splitlines()[-1]
    assert "Traceback" not in refused.stderr
    with pytest.raises(ApiError):
        api.get("configmaps", namespace, "train-source")


def test_a_submitted_script_starts_under_a_quota_of_memory(
    dtjob: Run, api: Api, namespace: str, shared_operator: OperatorProcess
) -> None:
    hard = {"requests.memory": "8Gi", "limits.memory": "8Gi", "requests.cpu": "4", "limits.cpu": "4"}
    api.create("resourcequotas", namespace, {"metadata": {"name": "team"}, "spec": {"hard": hard}})
    api.wait_for("resourcequotas", namespace, "team", lambda found: found and found.get("status", {}).get("used"))
    assert dtjob("submit", "train.py", "--name", "without", "--image", "trainer").returncode == 0
    blocked = api.wait_for(
        "dtjobs", namespace, "without", lambda found: found and found.get("status", {}).get("reason") == "CannotCreate"
    )
    assert blocked is not None
    assert "must specify" in blocked["status"]["message"]
    options = ["--memory", "2Gi", "--cpu", "1", "-e", "A=1", "--env-from-secret", "wandb", "--mount", "data:/data:ro"]
    done = dtjob(
        "submit",
        "train.py",
        "--workers",
        "2",
        "--image",
        "trainer",
        *options,
        "--set",
        "spec.failurePolicy.maxRestarts=3",
    )
    assert done.returncode == 0, done.stderr
    pods = api.wait("pods", namespace, lambda found: len(found) == 2)
    assert sorted(pods) == ["train-worker-0-0", "train-worker-1-0"]
    for pod in pods.values():
        container = pod["spec"]["containers"][0]
        amounts = {"cpu": "1", "memory": "2Gi"}
        assert container["resources"] == {"limits": amounts, "requests": amounts}
        assert {"name": "A", "value": "1"} in container["env"]
        assert container["envFrom"] == [{"secretRef": {"name": "wandb"}}]
        assert {"name": "mount-1", "mountPath": "/data", "readOnly": True} in container["volumeMounts"]
    assert api.get("dtjobs", namespace, "train")["spec"]["failurePolicy"]["maxRestarts"] == 3


def test_files_of_a_job_that_is_gone_are_replaced(dtjob: Run, api: Api, namespace: str) -> None:
    ours = {"app.kubernetes.io/created-by": "dtjob-submit"}
    old = {"metadata": {"name": "train-source", "labels": ours}, "data": {"old": "1"}, "immutable": True}
    api.create("configmaps", namespace, old)
    api.create("configmaps", namespace, {"metadata": {"name": "mine-source"}})
    refused = dtjob("submit", "train.py", "--name", "mine")
    assert (refused.returncode, "mine-source of somebody else" in refused.stderr) == (3, True)
    assert dtjob("submit", "train.py").returncode == 0
    assert list(api.get("configmaps", namespace, "train-source")["data"]) == ["train.py"]


def test_a_manifest_is_created_too(dtjob: Run, api: Api, namespace: str, tmp_path: Path) -> None:
    made = dtjob("submit", "train.py", "--dry-run").stdout.split("---\n")[1]
    (tmp_path / "job.yaml").write_text(made)
    assert dtjob("submit", "job.yaml").returncode == 0
    assert api.get("dtjobs", namespace, "train")["spec"]["program"]["entrypoint"] == "train.py"
