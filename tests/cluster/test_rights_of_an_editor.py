# SPDX-License-Identifier: Apache-2.0
"""Every command, one after the other, with the rights of a namespace's editor and no others."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from dtjob.cli import main
from dtjob.objects import labels
from tests.cluster.support.editor import editor
from tests.cluster.support.jobs import job
from tests.unit.operator.cli.convert.tfjobs import replica, tfjob
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

ELSEWHERE = {
    "run": "it needs no cluster",
    "operator": "it has rights of its own: test_chart_rights.py",
    "fetch": "test_streams_of_pods.py",
    "tensorboard": "test_streams_of_pods.py",
    "exec": "test_streams_of_pods.py",
    "ui": "tests/browser/test_thousand_jobs.py",
}
OF_A_CLUSTER = (
    *("submit", "list", "status", "logs", "wait", "events", "top", "suspend", "resume", "scale", "restart", "delete"),
    *("debug-bundle", "doctor", "get"),
)
Dtjob = Callable[..., str]


@pytest.fixture
def run_commands() -> set[str]:
    return set()


@pytest.fixture
def dtjob(
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run_commands: set[str],
) -> Dtjob:
    """Runs a command in this process. Gives what it prints, and checks its exit code."""
    kubeconfig = editor(cluster, api, namespace, tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> str:
        run_commands.add(arguments[0])
        more = ("--kubeconfig", str(kubeconfig)) if arguments[0] in OF_A_CLUSTER or "--cluster" in arguments else ()
        monkeypatch.setattr(sys, "argv", ["dtjob", *arguments, *more])
        with pytest.raises(SystemExit) as end:
            main.main()
        out, err = capsys.readouterr()
        assert int(end.value.code or 0) == code, err
        return out or err

    return run


def test_every_command_runs(dtjob: Dtjob, api: Api, namespace: str, run_commands: set[str], tmp_path: Path) -> None:
    _of_files(dtjob, tmp_path)
    _of_one_job(dtjob, api, namespace)
    _of_jobs_that_change(dtjob, api, namespace)
    assert f"rights: in {namespace} you may do what dtjob needs" in (said := dtjob("doctor"))
    assert "not seen  operator: you may not look at it" in said
    commands = {name for name, one in get_command(main.app()).commands.items() if not one.hidden}  # type: ignore[attr-defined]
    assert commands - run_commands == set(ELSEWHERE)


def _of_files(dtjob: Dtjob, directory: Path) -> None:
    """Commands about manifests, and those that create jobs of them."""
    assert dtjob("version").startswith("dtjob ")
    dtjob("init", "demo", "--name", "first")
    assert "is valid" in dtjob("validate", "demo/job.yaml")
    assert "DTJOB_" in dtjob("explain", "demo/job.yaml", "--cluster", "-o", "yaml")
    (directory / "tfjob.yaml").write_text(yaml.safe_dump(tfjob({"Chief": replica()})))
    (directory / "converted.yaml").write_text(dtjob("convert", "tfjob.yaml"))
    assert "is valid" in dtjob("validate", "converted.yaml")
    assert dtjob("submit", "demo/job.yaml").startswith("first is submitted")
    assert dtjob("submit", "converted.yaml").endswith("\n")
    options = ("--workers", "2", "--claim", "data", "--image", "registry.example/a:1", "--name", "digits")
    assert dtjob("submit", "demo/train.py", *options).startswith("digits is submitted")


def _of_one_job(dtjob: Dtjob, api: Api, namespace: str) -> None:
    """Commands that watch. No operator runs, so the status is written here."""
    assert "first" in dtjob("list")
    assert dtjob("get", "-l", "no=such") == f"no jobs in namespace {namespace}\n"
    assert yaml.safe_load(dtjob("get", "digits", "-o", "yaml"))["metadata"]["name"] == "digits"
    assert dtjob("status", "digits").startswith("digits: Pending: the operator has not written a status")
    assert json.loads(dtjob("status", "digits", "-o", "json"))["metadata"]["namespace"] == namespace
    assert dtjob("events", "digits").startswith("no events of digits")
    assert dtjob("logs", "digits") == "no pod of digits has printed a line\n"
    assert dtjob("wait", "digits", "--timeout", "1s", code=124) == "dtjob: digits: Pending after 1 s\n"
    api.patch("dtjobs", namespace, "digits", {"status": {"phase": "Succeeded", "message": "done"}}, "status")
    assert dtjob("top", "digits") == "digits: Succeeded: done\n"
    assert "digits-debug.tar.gz" in dtjob("debug-bundle", "digits")
    assert dtjob("delete", "digits") == "digits is deleted\n"


def _of_jobs_that_change(dtjob: Dtjob, api: Api, namespace: str) -> None:
    """Commands that steer."""
    api.create("dtjobs", namespace, job("grows", elasticPolicy={}))
    of_worker = {labels.JOB_NAME: "grows", labels.ROLE: "worker", labels.INDEX: "1", labels.ATTEMPT: "0"}
    spec = {"containers": [{"name": "tensorflow", "image": "registry.example/a:1"}]}
    api.create("pods", namespace, {"metadata": {"name": "grows-worker-1-0", "labels": of_worker}, "spec": spec})
    assert "grows-worker-1-0 deleted" in dtjob("restart", "grows", "--task", "worker-1")
    dtjob("suspend", "grows")
    assert api.get("dtjobs", namespace, "grows")["spec"]["suspend"] is True
    dtjob("resume", "grows")
    dtjob("scale", "grows", "3")
    stored = api.get("dtjobs", namespace, "grows")["spec"]
    assert (stored["suspend"], stored["replicaSpecs"]["worker"]["replicas"]) == (False, 3)
