# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` with real training processes: undisturbed, killed, stopped and resumed."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.local_runs import LocalRun, assert_identical, manifest, send_signal

pytestmark = pytest.mark.timeout(300)

EPOCHS = 16
STEPS = EPOCHS * 23
"""1,437 training images in batches of 64."""
CHECKPOINTS = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 50}


def run_to_the_end(file: Path, work_directory: Path) -> dict[str, Any]:
    """An undisturbed run's summary."""
    with LocalRun(file, work_directory) as run:
        code, result = run.end()
        assert code == 0, run.told
        assert run.processes() == {}
    return result


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("digits") / "digits.yaml"
    # Without an image: a process needs none.
    return manifest("digits.yaml", file, EPOCHS, checkpoint=CHECKPOINTS, image=None)


@pytest.fixture(scope="module")
def undisturbed(digits, tmp_path_factory) -> dict[str, Any]:
    """The summary of the run that all disturbed ones are compared with."""
    return run_to_the_end(digits, tmp_path_factory.mktemp("undisturbed"))


def test_an_undisturbed_run_trains_all_steps_and_saves_its_model(undisturbed):
    assert undisturbed["phase"] == "Succeeded"
    assert undisturbed["steps"] == undisturbed["totalSteps"] == STEPS
    assert undisturbed["metrics"]["val_accuracy"] > 0.95
    assert undisturbed["restarts"] == {"total": 0, "byCause": {}}
    assert undisturbed["recoverySeconds"] == []
    assert undisturbed["evaluation"]["metrics"]["accuracy"] > 0.9
    assert undisturbed["model"].startswith(undisturbed["runDirectory"])
    assert Path(undisturbed["model"]).is_file()


def restarts(statuses: Mapping[str, Mapping[str, Any]]) -> int:
    """How often the chief's training process was started again in its supervisor."""
    return int(statuses.get("chief-0", {}).get("restartsInPlace", 0))


def test_kills_of_processes_do_not_change_the_model(digits, undisturbed, tmp_path):
    """kill -9 of a worker's training process, of a worker's supervisor, of the chief: the result has the same bits.

    A training process is started again by its supervisor; a supervisor's task is a new one.
    """
    with LocalRun(digits, tmp_path) as run:
        first = run.wait_for_step(60)
        os.kill(first["worker-1"]["trainingPid"], signal.SIGKILL)
        run.wait_until(lambda now: restarts(now) > restarts(first), "the chief's restart in place")
        second = run.wait_for_step(110)
        assert second["chief-0"]["pid"] == first["chief-0"]["pid"]
        assert {task: one["pid"] for task, one in second.items()} == {task: one["pid"] for task, one in first.items()}
        assert second["worker-1"]["trainingPid"] != first["worker-1"]["trainingPid"]
        os.kill(second["worker-0"]["pid"], signal.SIGKILL)
        run.wait_until(lambda now: restarts(now) > restarts(second), "the chief's second restart")
        third = run.wait_for_step(160)
        os.kill(third["chief-0"]["trainingPid"], signal.SIGKILL)
        code, result = run.end()
        assert code == 0, run.told
        assert run.processes() == {}
    print(f"recovery: {result['recoverySeconds']} s")
    assert "held-out accuracy" in run.told, "what the program prints is beside the JSON, not in it"
    assert "worker-1 was killed (SIGKILL)" in run.told
    assert "Traceback" not in run.told, "no error of TensorFlow over a task that comes back"
    again = re.findall(r"\] (.*): started again in place \(worker-1 was killed", run.told)
    assert {task for tasks in again for task in tasks.split(", ")} == {"chief-0", "worker-0", "worker-1"}
    assert result["restarts"]["byCause"] == {"Signal": 3}
    assert len(result["recoverySeconds"]) == 3
    assert result["steps"] == STEPS
    assert_identical(result["model"], undisturbed["model"])


def test_the_chief_is_killed_in_its_last_save(tmp_path):
    """Workers whose training is done by then are needed again: the group trains on from the checkpoint before."""
    file = tmp_path / "job.yaml"
    program = {"entrypoint": "tests/trainer/programs/train.py", "args": ["--epochs=2", "--slow-write=3"]}
    checkpoint = {"storage": {"volume": {"emptyDir": {}}}, "everyEpochs": 0, "everySteps": 20}
    manifest(
        "digits.yaml",
        file,
        2,
        program=program,
        checkpoint=checkpoint,
        image=None,
        replicaSpecs={"chief": {}, "worker": {"replicas": 2}},
    )
    with LocalRun(file, tmp_path) as run:
        statuses = run.wait_until(lambda now: now.get("chief-0", {}).get("writing") == 32, "the last save")
        os.kill(statuses["chief-0"]["trainingPid"], signal.SIGKILL)
        code, result = run.end()
        assert code == 0, run.told
    assert "chief-0 was killed (SIGKILL)" in run.told
    assert "training goes on from the checkpoint at step 20" in run.told
    assert (result["phase"], result["steps"]) == ("Succeeded", 32)


@pytest.mark.slow  # test_kills_of_processes_do_not_change_the_model is in every run
def test_ctrl_c_a_kill_and_resumes_do_not_change_the_model(digits, undisturbed, tmp_path):
    """Ctrl-C saves and leaves nothing behind; nor does kill -9 of dtjob itself; each next run goes on from there."""
    with LocalRun(digits, tmp_path) as run:
        run.wait_for_step(60)
        run.process.send_signal(signal.SIGINT)
        code, stopped = run.end()
        assert code == 130, run.told
        assert run.processes() == {}
    assert (stopped["phase"], stopped["reason"], stopped["resumed"]) == ("Interrupted", "SIGINT", False)
    assert 60 <= stopped["checkpoint"]["step"] < STEPS
    assert "goes on from the checkpoint at step" in run.told
    with LocalRun(digits, tmp_path) as run:
        statuses = run.wait_for_step(stopped["checkpoint"]["step"] + 1)
        assert statuses["chief-0"]["restoredStep"] == stopped["checkpoint"]["step"]
        run.process.kill()
        run.end()
        run.wait_until_nothing_is_left()
    with LocalRun(digits, tmp_path) as run:
        code, result = run.end()
        assert code == 0, run.told
    assert result["resumed"]
    assert result["runDirectory"] == stopped["runDirectory"]
    assert_identical(result["model"], undisturbed["model"])


def test_a_second_ctrl_c_kills_at_once(digits, tmp_path):
    with LocalRun(digits, tmp_path) as run:
        run.wait_until(lambda now: len(now) == 4, "four supervisors")
        send_signal(run.processes(), signal.SIGSTOP)  # none of them can answer SIGTERM now
        run.process.send_signal(signal.SIGINT)
        stopping = "every task is asked to save and end"
        assert run.process.stderr is not None
        while stopping not in (line := run.process.stderr.readline()):
            assert line, "dtjob did not say that it stops"
        run.process.send_signal(signal.SIGINT)
        code, _ = run.end()
        assert code == 130
        assert run.processes() == {}


@pytest.mark.slow
def test_mirrored_is_killed_and_comes_back(tmp_path):
    file = manifest("digits-mirrored.yaml", tmp_path / "job.yaml", EPOCHS, checkpoint=CHECKPOINTS)
    undisturbed = run_to_the_end(file, tmp_path / "undisturbed")
    with LocalRun(file, tmp_path / "killed") as run:
        os.kill(run.wait_for_step(60)["chief-0"]["trainingPid"], signal.SIGKILL)
        code, result = run.end()
        assert code == 0, run.told
    assert result["restarts"]["byCause"] == {"Signal": 1}
    assert result["metrics"]["val_accuracy"] > 0.95
    assert_identical(result["model"], undisturbed["model"])


@pytest.mark.slow
def test_parameter_server_counts_every_step(tmp_path):
    file = manifest("digits-ps.yaml", tmp_path / "job.yaml", EPOCHS, checkpoint=CHECKPOINTS)
    result = run_to_the_end(file, tmp_path / "runs")
    assert result["steps"] == result["totalSteps"] == STEPS
    assert result["metrics"]["val_accuracy"] > 0.95


@pytest.mark.slow  # test_parameter_server.py kills each role
def test_parameter_server_loses_a_worker_and_a_ps(tmp_path):
    """Training goes on without the worker; after the ps it goes on from the last checkpoint."""
    file = manifest("digits-ps.yaml", tmp_path / "job.yaml", EPOCHS, checkpoint=CHECKPOINTS)
    with LocalRun(file, tmp_path / "runs") as run:
        before = run.wait_for_step(60)
        chief = before["chief-0"]["trainingPid"]
        os.kill(chief, signal.SIGSTOP)  # so that training does not end before the worker is back
        os.kill(before["worker-1"]["trainingPid"], signal.SIGKILL)
        run.wait_until(lambda now: _serves_anew(now, before, "worker-1"), "the worker's return")
        os.kill(chief, signal.SIGCONT)
        after = run.wait_for_step(100)
        assert after["chief-0"]["trainingPid"] == chief
        os.kill(before["ps-0"]["pid"], signal.SIGKILL)
        run.wait_until(lambda now: _serves_anew(now, before, "ps-0"), "the return of the ps")
        code, result = run.end()
        assert code == 0, run.told
        assert run.processes() == {}
    print(f"recovery: {result['recoverySeconds']} s")
    assert result["steps"] == STEPS
    assert result["metrics"]["val_accuracy"] > 0.95


def _serves_anew(now, before, task: str) -> bool:
    status = now.get(task, {})
    return status.get("state") == "serving" and status["pid"] != before[task]["pid"]


def test_a_program_that_fails_says_why(tmp_path):
    program = tmp_path / "broken.py"
    program.write_text("raise ValueError('no data in /data')\n")
    file = manifest(
        "digits-mirrored.yaml",
        tmp_path / "job.yaml",
        1,
        program={"entrypoint": str(program)},
        failurePolicy={"maxRestartsWithoutProgress": 0},
    )
    with LocalRun(file, tmp_path / "runs") as run:
        code, result = run.end()
        assert run.processes() == {}
    assert code == 1
    assert (result["phase"], result["reason"]) == ("Failed", "MaxRestartsExceeded")
    assert "no data in /data" in result["lastFailure"]["logTail"]
    assert "ValueError: no data in /data" in run.told
