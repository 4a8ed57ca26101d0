# SPDX-License-Identifier: Apache-2.0
"""The commands that change jobs, with an operator, and the rights of a namespace's editor."""

from pathlib import Path

import pytest

from dtjob.api.names import KIND
from dtjob.client.cluster import connect
from dtjob.client.errors import Conflict
from dtjob.client.verbs.helper_pod import helper_pod
from tests.cluster.support.command_line import Run, command_line
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}}


@pytest.fixture
def dtjob(cluster: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> Run:
    return command_line(cluster, api, namespace, tmp_path)


def test_a_job_is_suspended_resumed_scaled_restarted_and_deleted(
    dtjob: Run, api: Api, namespace: str, shared_operator: OperatorProcess, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job("digits", program=False, elasticPolicy={}))
    wait_phase(api, namespace, "Running")
    assert dtjob("scale", "digits", 3).returncode == 0
    found = api.wait_for("dtjobs", namespace, "digits", lambda one: one and one["status"].get("ready") == "4/4")
    assert found["spec"]["replicaSpecs"]["worker"]["replicas"] == 3
    assert dtjob("suspend", "digits").returncode == 0
    assert dtjob("wait", "digits", "--for", "Suspended").returncode == 0
    assert api.list("pods", namespace) == []
    assert "resume digits" in dtjob("restart", "digits").stderr
    assert dtjob("resume", "digits").returncode == 0
    wait_phase(api, namespace, "Running")
    assert dtjob("restart", "digits").returncode == 0
    wait_phase(api, namespace, "Running")
    before = api.get("pods", namespace, "digits-worker-1-0") if _has(api, namespace, "digits-worker-1-0") else None
    assert dtjob("restart", "digits", "--task", "worker-1").returncode == 0
    if before is not None:
        api.wait("pods", namespace, lambda pods: before["metadata"]["uid"] not in str(pods))
    done = dtjob("debug-bundle", "digits", "-o", "bundle.tar.gz")
    assert done.returncode == 0, done.stderr
    assert dtjob("delete", "digits").returncode == 0
    api.wait("dtjobs", namespace, lambda jobs: not jobs)


def _has(api: Api, namespace: str, name: str) -> bool:
    return name in [pod["metadata"]["name"] for pod in api.list("pods", namespace)]


def test_the_pod_that_reads_checkpoints_is_taken_under_the_restricted_profile(api: Api, namespace: str) -> None:
    api.patch(
        "namespaces", None, namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    )
    stored = api.create("dtjobs", namespace, job("digits", checkpoint=CLAIM))
    made = helper_pod(stored, ["python3", "-c", "pass"])
    assert api.create("pods", namespace, made, dryRun="All")["metadata"]["uid"]


def test_the_error_of_an_impossible_command_is_one_sentence(dtjob: Run, api: Api, namespace: str) -> None:
    api.create("dtjobs", namespace, job("digits"))
    done = dtjob("scale", "digits", 3)
    assert (done.returncode, done.stderr) == (
        3,
        "dtjob: digits: its number of workers is fixed; only a job with elasticPolicy can be scaled\n",
    )
    assert "emptyDir, which ends with the pod" in dtjob("fetch", "digits").stderr
    for command in ("suspend", "resume", "restart", "delete", "fetch", "tensorboard", "debug-bundle"):
        done = dtjob(command, "none")
        assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stderr


def test_a_job_of_another_uid_is_neither_changed_nor_deleted(cluster: ControlPlane, api: Api, namespace: str) -> None:
    """Somebody may have replaced it since it was read."""
    api.create("dtjobs", namespace, job("digits", elasticPolicy={}))
    client = connect(str(cluster.kubeconfig), None, namespace)
    for call in (
        lambda: client.patch(KIND, "digits", "another", {"spec": {"suspend": True}}),
        lambda: client.delete(KIND, "digits", "another"),
    ):
        with pytest.raises(Conflict, match="digits: was deleted, and another object has its name now"):
            call()
    assert api.get("dtjobs", namespace, "digits")["spec"]["suspend"] is False
