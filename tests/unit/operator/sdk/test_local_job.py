# SPDX-License-Identifier: Apache-2.0
"""A job on this machine as an object, with a stand-in for `dtjob run`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dtjob
from dtjob.api.phase import Phase
from dtjob.sdk import local_job
from tests.unit.operator.client.verbs.jobs import RUNNING, stored

STAND_IN = """
import json, pathlib, signal, sys, time

home = pathlib.Path(sys.argv[3]) / "digits"
run, plan = home / "run-1", json.loads((home.parent / "plan").read_text())
signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
signal.signal(signal.SIGTERM, lambda *_: (home.parent / "killed").touch() or sys.exit(143))
if plan.get("says"):
    sys.exit(plan["says"])
(run / "logs").mkdir(parents=True, exist_ok=True)
(run / "checkpoints").mkdir(exist_ok=True)
(run / "checkpoints" / "model.keras").write_text("m")
(run / "logs" / "digits-worker-0-0.log").write_text("one\\n\\x1b[31mtwo\\x1b[0m\\n")
file = run / "run.json"
starts = json.loads(file.read_text())["starts"] + 1 if file.exists() else 1
status = {**plan["status"], "restarts": {"total": starts}}
file.with_suffix(".new").write_text(
    json.dumps({"uid": "u", "job": "digits", "spec_hash": "h", "starts": starts, "status": status})
)
file.with_suffix(".new").rename(file)
while plan["holds"]:
    time.sleep(0.02)
"""
Run = Callable[..., dtjob.LocalJob]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Starts a job whose `dtjob run` writes this status, and trains on if it `holds`."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setattr(local_job, "RUN", (sys.executable, str(tmp_path / "stand_in.py")))
    monkeypatch.setattr(local_job, "LOOK_SECONDS", 0.01)
    made: list[dtjob.LocalJob] = []

    def start(status: dict[str, Any] | None = None, *, holds: bool = False, says: str = "") -> dtjob.LocalJob:
        (tmp_path / "plan").write_text(json.dumps({"status": status or {}, "holds": holds, "says": says}))
        manifest = stored(elasticPolicy={})
        del manifest["status"]
        made.append(dtjob.LocalJob(manifest, tmp_path))
        return made[-1]

    yield start
    for job in made:
        job.close()


def test_a_local_job_is_used_as_one_of_a_cluster(run: Run, tmp_path: Path) -> None:
    job = run({**RUNNING, "phase": "Succeeded"})
    assert job.wait(timeout=20).phase is Phase.SUCCEEDED
    assert list(job.logs(follow=True)) == list(job.logs("worker")) == ["worker-0 | one", "worker-0 | two"]
    assert list(job.logs("chief")) == []
    assert job.metrics() == {"step": 251.0, "loss": 0.5}
    assert job.manifest.spec.image == "registry.example/a:1"
    assert job.fetch(directory=tmp_path / "out") == [tmp_path / "out" / "model.keras"]
    with pytest.raises(dtjob.Refused, match=r"digits: best: no such file in .*; there are model.keras"):
        job.fetch("best", directory=tmp_path)
    assert "<pre>digits: Succeeded" in job._repr_html_()
    with pytest.raises(dtjob.Refused, match=r"digits: has ended \(Succeeded\), so it cannot be suspended"):
        job.suspend()


def test_a_local_job_is_suspended_resumed_and_scaled(run: Run) -> None:
    job = run(RUNNING, holds=True)
    assert job.wait("Running", timeout=20).restarts.total == 1
    with pytest.raises(TimeoutError, match=r"digits: Running after 0.1 s"):
        job.wait(timeout=0.1)
    job.suspend()
    assert job.wait("Suspended", timeout=20).phase is Phase.SUSPENDED
    with pytest.raises(dtjob.JobFailed, match=r"^digits: Suspended$"):
        job.wait()
    job.resume()
    assert job.wait("Running", timeout=20).restarts.total == 2
    job.scale(3)
    assert job.wait("Running", timeout=20).restarts.total == 3
    assert job.manifest.spec.replica_specs.worker.replicas == 3


def test_a_local_job_that_is_deleted_ends_without_saving(run: Run, tmp_path: Path) -> None:
    job = run(RUNNING, holds=True)
    job.wait("Running", timeout=20)
    job.delete()
    assert job.wait("Deleted").phase is None
    with pytest.raises(dtjob.NotFound, match="digits: was deleted"):
        _ = job.status
    with pytest.raises(dtjob.JobFailed, match="digits: deleted"):
        job.wait()


def test_an_earlier_run_says_nothing_of_a_job_that_starts(run: Run, tmp_path: Path) -> None:
    run({"phase": "Succeeded"}).wait(timeout=20)
    job = run(RUNNING, holds=True)
    assert job.wait("Running", timeout=20).restarts.total == 2


@pytest.mark.parametrize(
    ("started", "said"),
    [
        ({"status": {"phase": "Failed", "reason": "ProgramFailed", "message": "it ended"}},
         r"Failed \(ProgramFailed\): it ended"),
        ({"says": "dtjob: job.yaml: is wrong"}, "Failed: job.yaml: is wrong"),
    ],
)  # fmt: skip
def test_a_failure_has_its_reason(run: Run, started: dict[str, Any], said: str) -> None:
    with pytest.raises(dtjob.JobFailed, match=f"^digits: {said}$"):
        run(**started).wait(timeout=20)


def test_a_client_that_is_left_saves_what_trains_here(run: Run) -> None:
    with dtjob.Client(here=True) as client:
        job = run(RUNNING, holds=True)
        client._jobs.append(job)
        job.wait("Running", timeout=20)
    assert job.status.phase is Phase.SUSPENDED
