# SPDX-License-Identifier: Apache-2.0
"""The commands that watch, with an operator, and the rights of a namespace's editor."""

import json
from pathlib import Path

import pytest

from tests.cluster.support.command_line import Run, command_line
from tests.cluster.support.jobs import job
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


@pytest.fixture
def dtjob(cluster: ControlPlane, api: Api, namespace: str, tmp_path: Path) -> Run:
    return command_line(cluster, api, namespace, tmp_path)


def test_a_job_is_watched_to_its_end(
    dtjob: Run, api: Api, namespace: str, shared_operator: OperatorProcess, auto_kubelet: Kubelet
) -> None:
    assert dtjob("list").stderr == f"no jobs in namespace {namespace}\n"
    api.create("dtjobs", namespace, job("digits", program=False))
    assert dtjob("wait", "digits", "--for", "running", "--timeout", "90s").returncode == 0
    assert dtjob("list").stdout.splitlines()[1].startswith("digits   Running")
    said = dtjob("status", "digits").stdout
    assert said.startswith("digits: Running (AllTasksRunning)")
    assert json.loads(dtjob("status", "digits", "-o", "json").stdout)["metadata"]["name"] == "digits"
    assert dtjob("wait", "digits", "--timeout", "1s").returncode == 124
    assert "job/digits" in dtjob("events", "digits").stdout
    chief = next(pod for pod in api.list("pods", namespace) if "chief" in pod["metadata"]["name"])
    auto_kubelet.exit(chief["metadata"]["name"], 0)
    shown = dtjob("top", "digits")
    assert (shown.returncode, shown.stdout.splitlines()[-1].startswith("digits: Succeeded")) == (0, True)
    assert dtjob("wait", "digits", "--for", "Failed").returncode == 1


@pytest.mark.parametrize("command", ["status", "logs", "wait", "events", "top"])
def test_a_job_that_is_not_there_is_one_sentence(dtjob: Run, command: str) -> None:
    done = dtjob(command, "none")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("dtjob: ")
    assert len(done.stderr.splitlines()) == 1
    assert '"none" not found' in done.stderr


def test_the_error_of_a_forbidden_namespace_is_one_sentence(dtjob: Run) -> None:
    done = dtjob("list", "-n", "kube-system")
    assert done.returncode == 3
    assert "forbidden" in done.stderr
    assert len(done.stderr.splitlines()) == 1
