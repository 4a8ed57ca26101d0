# SPDX-License-Identifier: Apache-2.0
"""Supervisors with the real training process: TensorFlow under MultiWorkerMirroredStrategy, killed and brought back."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import PROGRAMS
from tests.trainer.support.supervisors import ROOT, Job, Running, runs, wait_until

pytest.importorskip("tensorflow")

TASKS = ("chief-0", "worker-0", "worker-1")


@pytest.mark.slow  # a crashed process starts again in its container in every run
@pytest.mark.parametrize("victim", ["worker-0", "chief-0"])
def test_training_goes_on_after_a_kill(tmp_path: Path, victim: str) -> None:
    job = Job(tmp_path, "MultiWorkerMirrored", chief=1, worker=2)
    checkpoints = tmp_path / "checkpoints"
    arguments = ["--epochs=6", f"--model={checkpoints / 'model.keras'}"]
    job.command = ["-m", "dtjob_trainer.run", str(ROOT / "examples" / "digits.py"), *arguments]
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


GROUPS = {
    "Default": {"chief": 1},
    "MultiWorkerMirrored": {"chief": 1, "worker": 2},
    "ParameterServer": {"chief": 1, "worker": 1, "ps": 1},
}


@pytest.mark.parametrize(
    ("strategy", "victim", "number"),
    [
        ("MultiWorkerMirrored", "worker-0", signal.SIGKILL),
        pytest.param("MultiWorkerMirrored", "chief-0", signal.SIGSEGV, marks=pytest.mark.slow),
        pytest.param("ParameterServer", "chief-0", signal.SIGKILL, marks=pytest.mark.slow),
        ("Default", "chief-0", signal.SIGABRT),
    ],
)
def test_a_crashed_process_starts_again_in_its_container(
    tmp_path: Path, strategy: str, victim: str, number: signal.Signals
) -> None:
    """All supervisors go on, and the chief's tells who crashed. A signal that was not named ends the container."""
    job = Job(tmp_path, strategy, **GROUPS[strategy])
    job.command = ["-m", "dtjob_trainer.run", str(ROOT / "examples" / "digits.py"), "--epochs=100000"]
    saves = {"directory": str(tmp_path / "checkpoints"), "everySteps": 20, "maxToKeep": 2}
    environ = {"DTJOB_CHECKPOINT": json.dumps(saves), "DTJOB_RESTART_SIGNALS": "SIGABRT,SIGKILL,SIGSEGV"}

    def is_its_own(step: int) -> bool:
        """Its last reported step is beyond `step`, and was not restored."""
        now = running[victim].status()
        return now.get("state") == "training" and now.get("step", 0) > max(step, now.get("restoredStep", step))

    try:
        running = {
            f"{role}-{index}": job.start(f"{role}-{index}", environ=environ)
            for role, count in GROUPS[strategy].items()
            for index in range(count)
        }
        chief = running["chief-0"]
        wait_until(lambda: chief.status().get("checkpoint", {}).get("step", 0) >= 20, "a checkpoint", 120)
        wait_until(lambda: is_its_own(20), "a step of its own")
        before = running[victim].status()
        os.kill(before["trainingPid"], number)
        after = running[victim].wait_for(120, state="training", incarnation=1)
        assert (after["pid"], after["restartsInPlace"]) == (before["pid"], 1)
        assert after["lastRestart"]["cause"] == f"{victim} was killed ({number.name})"
        told = chief.wait_for(120, state="training")
        assert told["crashes"].pop("step") >= before["step"]
        assert told["crashes"] == {"count": 1, "task": victim, "signal": number.name}
        assert told["restoredStep"] >= 20
        assert not runs(before["trainingPid"])
        wait_until(lambda: is_its_own(told["restoredStep"]), "a step after it")
        os.kill(running[victim].status()["trainingPid"], signal.SIGTRAP)
        assert running[victim].end() == 128 + signal.SIGTRAP
    finally:
        job.end()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_saves_that_take_long_are_not_cut_off_by_peers_that_go(tmp_path: Path) -> None:
    """Neither the one that a preempted peer asks for, nor one in the background as a peer dies."""
    job = Job(tmp_path, "MultiWorkerMirrored", chief=1, worker=2)
    slow = ("--epochs=100000", "--slow-state=2", "--slow-write=4")
    job.command = ["-m", "dtjob_trainer.run", str(PROGRAMS / "train.py"), *slow]
    environ = {"DTJOB_CHECKPOINT": json.dumps({"directory": str(tmp_path / "checkpoints"), "everySteps": 500})}

    def replaced(task: str) -> Running:
        os.kill(running[task].pid, signal.SIGKILL)
        return job.start(task, environ=environ)

    try:
        running = {task: job.start(task, environ=environ) for task in TASKS}
        chief = running["chief-0"]
        wait_until(lambda: chief.status().get("step", 0) >= 20, "20 steps", 120)
        running["worker-0"].process.send_signal(signal.SIGTERM)
        assert running["worker-0"].end(120) == 143
        running["worker-1"].wait_for(120, restartsInPlace=1)  # its peers' supervisors hear of it at once
        running["worker-0"] = job.start("worker-0", environ=environ)
        status = chief.wait_for(120, state="training", incarnation=1)
        assert 20 <= status["restoredStep"] < 500
        assert status["lastRestart"]["cause"] == "worker-0 was told to end"

        chief.wait_for(120, writing=500)
        running["worker-1"] = replaced("worker-1")
        status = chief.wait_for(120, state="training", incarnation=2)
        assert status["restoredStep"] == 500

        # a template that does not answer is not waited for, and leaves no second training process
        template = next(pid for pid in children_of(chief.pid) if name_of(pid) == "dtjob-template")
        os.kill(template, signal.SIGSTOP)
        running["worker-1"] = replaced("worker-1")
        status = chief.wait_for(120, state="training", incarnation=3)
        assert children_of(chief.pid) == [status["trainingPid"]]
    finally:
        job.end()


def children_of(pid: int) -> list[int]:
    """The living children of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for each in tasks for child in map(int, each.read_text().split()) if runs(child)]


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()
