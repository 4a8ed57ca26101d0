"""Supervisors with the real training process: TensorFlow under MultiWorkerMirroredStrategy, killed and brought back."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.trainer.harness import PROGRAMS
from tests.trainer.supervisors import ROOT, Job, runs, wait_until

pytest.importorskip("tensorflow")
pytest.importorskip("sklearn")

TASKS = ("chief-0", "worker-0", "worker-1")


@pytest.mark.parametrize("victim", ["worker-0", "chief-0"])
def test_training_goes_on_after_a_kill(tmp_path: Path, victim: str) -> None:
    job = Job(tmp_path, "MultiWorkerMirrored", chief=1, worker=2)
    job.command = ["-m", "dtjob_trainer.program", str(ROOT / "examples" / "digits.py"), "--epochs=6"]
    checkpoints = tmp_path / "checkpoints"
    environ = {"DTJOB_CHECKPOINT": json.dumps({"directory": str(checkpoints), "everySteps": 20})}
    try:
        running = {task: job.start(task, environ=environ) for task in TASKS}
        wait_until(lambda: running["chief-0"].status().get("checkpoint", {}).get("step", 0) >= 20, "a checkpoint", 120)
        before = {task: each.status() for task, each in running.items()}
        os.kill(running[victim].pid, signal.SIGKILL)
        assert running[victim].end() == -signal.SIGKILL
        running[victim] = job.start(victim, environ=environ)
        survivors = [task for task in TASKS if task != victim]
        for task in survivors:
            status = running[task].wait_for(120, restartsInPlace=1)
            assert status["pid"] == before[task]["pid"], "the supervisor goes on"
        cause = "the chief task was lost" if victim == "chief-0" else f"{victim} was lost"
        for task in survivors:
            assert running[task].wait_for(120, state="training", incarnation=1)["lastRestart"]["cause"] == cause
        assert running["chief-0"].wait_for(120, state="training")["restoredStep"] >= 20
        assert {task: each.end(240) for task, each in running.items()} == dict.fromkeys(TASKS, 0)
    finally:
        job.end()
    mark = json.loads((checkpoints / "DONE").read_text())
    assert (mark["uid"], mark["step"]) == (job.uid, 6 * 23)
    assert (checkpoints / "model.keras").exists()
    assert not any(runs(status["trainingPid"]) for status in before.values())


def test_a_chief_that_is_slow_to_save_for_a_preempted_peer_is_let_save(tmp_path: Path) -> None:
    job = Job(tmp_path, "MultiWorkerMirrored", chief=1, worker=2)
    job.command = ["-m", "dtjob_trainer.program", str(PROGRAMS / "train.py"), "--epochs=100000", "--slow-state=3"]
    environ = {"DTJOB_CHECKPOINT": json.dumps({"directory": str(tmp_path / "checkpoints"), "everySteps": 10**9})}
    try:
        running = {task: job.start(task, environ=environ) for task in TASKS}
        wait_until(lambda: running["chief-0"].status().get("step", 0) >= 20, "20 steps", 120)
        running["worker-0"].process.send_signal(signal.SIGTERM)
        assert running["worker-0"].end(120) == 143
        running["worker-1"].wait_for(120, restartsInPlace=1)  # its peers' supervisors hear of it at once
        running["worker-0"] = job.start("worker-0", environ=environ)
        chief = running["chief-0"].wait_for(120, state="training", incarnation=1)
        assert chief["restoredStep"] >= 20
        assert chief["lastRestart"]["cause"] == "worker-0 was preempted"
    finally:
        job.end()
