# SPDX-License-Identifier: Apache-2.0
"""How a local run ends. Its processes are small programs in place of supervisors."""

import errno
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dtjob.api.job import Job
from dtjob.local import runs
from dtjob.local.engine import Engine
from dtjob.local.outcome import Outcome
from dtjob.local.processes import command
from dtjob.local.processes.command import Command
from dtjob.local.runs import open_run
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders

pytestmark = pytest.mark.timeout(60)
SERVES = ["sleep", "600"]
SAVES_SLOWLY = """
import signal, sys, time
def save(*_):
    time.sleep(2)
    open(sys.argv[1] + "/saved", "w").close()
    raise SystemExit(143)
signal.signal(signal.SIGTERM, save)
open(sys.argv[1] + "/begun", "w").close()
while True:
    time.sleep(600)
"""


async def run(
    job: Job,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    chief: list[str],
    others: list[str] = SERVES,
    look: Callable[[Engine], None] = lambda engine: None,
) -> Outcome:
    """Run the job where the chief is this program and every other task another, which serves until it is told to
    end; `look` is called after each look at them."""

    def local_command(pod: Manifest, *_: object, **__: object) -> Command:
        environment = command.container_environment(command.training_container(pod))
        return Command(chief if "-chief-" in pod["metadata"]["name"] else others, environment)

    monkeypatch.setattr(command, "local_command", local_command)
    record = open_run(job, directory)
    try:
        engine = Engine(job, record, lambda snapshot: look(engine), lambda event: None)
        return await engine.run()
    finally:
        record.close()


@pytest.mark.parametrize(("program", "phase"), [("true", "Succeeded"), ("false", "Failed")])
async def test_a_run_ends_with_its_job_though_other_tasks_still_run(
    program: str, phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    policy = {"cleanPodPolicy": "None", "failurePolicy": {"maxRestartsWithoutProgress": 0}}
    outcome = await run(builders.job("ParameterServer", ps=1, **policy), tmp_path, monkeypatch, [program])
    assert outcome.snapshot.status["phase"] == phase
    assert not outcome.snapshot.pids


async def test_a_stop_waits_for_the_task_with_the_longest_grace_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another's, of one second, would be over half-way through the save."""
    short = {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}
    job = builders.job(replicaSpecs={"chief": {}, "worker": short, "evaluator": short})
    chief = [sys.executable, "-c", SAVES_SLOWLY, str(tmp_path)]

    def stop_once_it_has_begun(engine: Engine) -> None:
        if (tmp_path / "begun").exists() and not engine.stopping:
            engine.stop(signal.SIGTERM)

    outcome = await run(job, tmp_path, monkeypatch, chief, look=stop_once_it_has_begun)
    assert outcome.interrupted == signal.SIGTERM
    assert (tmp_path / "saved").exists()
    assert not outcome.snapshot.pids


# Times are whole seconds, and the evaluator is to be older than the end of training.
async def test_a_run_ends_when_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing happens in it: all tasks would serve on."""
    job = builders.job(activeDeadlineSeconds=2, cleanPodPolicy="None", suspend=True)
    outcome = await run(job, tmp_path, monkeypatch, SERVES)
    status = outcome.snapshot.status
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "activeDeadlineSeconds (2)" in status["message"]
    assert not outcome.snapshot.pids


async def test_the_time_of_a_run_that_was_stopped_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = builders.job(activeDeadlineSeconds=3600)

    def stop_once_it_runs(engine: Engine) -> None:
        if engine.snapshot().status.get("phase") == "Running" and not engine.stopping:
            engine.stop(signal.SIGTERM)

    assert (await run(job, tmp_path, monkeypatch, SERVES, look=stop_once_it_runs)).interrupted == signal.SIGTERM
    again = open_run(job, tmp_path)
    again.close()
    assert again.active_before is not None
    assert 0 <= again.active_before.seconds < 60
    assert again.active_before.since is None


async def test_a_stop_on_a_full_disk_is_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog):
    def look(engine: Engine) -> None:
        if engine.snapshot().status.get("phase") == "Running" and not engine.stopping:
            monkeypatch.setattr(runs, "_write", full)
            engine.stop(signal.SIGINT)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ended = await run(builders.job("Mirrored"), tmp_path, monkeypatch, SERVES, look=look)
    assert ended.interrupted == signal.SIGINT
    assert "run-1 cannot be written: No space left on device" in caplog.text
    assert "a bug in dtjob" not in caplog.text


@pytest.mark.parametrize("is_ours", [True, False])
async def test_only_reports_of_the_runs_own_tasks_count(is_ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A stranger may have taken the port of a task."""
    uid, looks = "", 0

    async def read_status(host: str, port: int, **_: float) -> dict[str, object]:
        return {"jobUid": uid if is_ours else "another", "task": "chief-0", "attempt": 0, "step": 4}

    def look(engine: Engine) -> None:
        nonlocal uid, looks
        uid, looks = engine.job.metadata.uid, looks + bool(engine.snapshot().pids)
        if looks == 3:
            engine.stop(signal.SIGTERM)

    monkeypatch.setattr("dtjob.local.engine.read_status", read_status)
    outcome = await run(builders.job("Mirrored"), tmp_path, monkeypatch, SERVES, look=look)
    assert outcome.snapshot.chief.get("step") == (4 if is_ours else None)
