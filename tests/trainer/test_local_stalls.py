# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` finds stalls as in a cluster, and takes no time for one in which all was stopped."""

import signal
import time
from pathlib import Path

import pytest

from tests.trainer.support.harness import PROGRAMS
from tests.trainer.support.local_runs import LocalRun, send_signal, written_job

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

LIMIT = 10
"""The least that the manifest takes."""
EPOCHS, STEPS = 6, 8


def job(directory: Path, *args: str, workers: int = 1) -> Path:
    """A job of a chief and workers; the program's directory is its run's own."""
    spec = {
        "strategy": "MultiWorkerMirrored",
        "program": {"entrypoint": str(PROGRAMS / "stalling.py"), "args": [f"--epochs={EPOCHS}", *args]},
        "replicaSpecs": {"chief": {}, "worker": {"replicas": workers}},
        "checkpoint": {"storage": {"volume": {"emptyDir": {}}}, "everySteps": STEPS},
        "failurePolicy": {"stallTimeoutSeconds": LIMIT, "rules": [{"action": "Restart", "onReasons": ["Stalled"]}]},
    }
    return written_job(directory / "job.yaml", "stalling", **spec)


def test_a_hanging_data_function_is_a_stall_and_a_stopped_terminal_is_none(tmp_path: Path) -> None:
    """All of its processes are stopped for longer than the limit, as by Ctrl-Z with `dtjob run` in a shell's job of its
    own; then a task hangs."""
    file = job(tmp_path, "--hang=data", "--task=worker-0", f"--marks={tmp_path}", "--epoch=3", "--step-seconds=0.1")
    with LocalRun(file, tmp_path / "runs") as run:
        run.wait_for_step(STEPS)
        stopped = [run.process.pid, *run.processes()]
        began = time.monotonic()
        send_signal(stopped, signal.SIGSTOP)
        while time.monotonic() < began + LIMIT + 2:
            time.sleep(0.1)
        send_signal(reversed(stopped), signal.SIGCONT)
        code, result = run.end()
        logs = {log.name: log.read_text() for log in Path(result["runDirectory"]).rglob("*.log")}
        run.wait_until_nothing_is_left()
    assert code == 0, run.told
    assert (result["phase"], result["steps"]) == ("Succeeded", EPOCHS * STEPS)
    assert result["restarts"]["byCause"].pop("Stalled") == 1, "only the task that hung"
    assert "worker-0 stalled after step" in run.told
    assert "in its data function (exit code 77); failurePolicy.rules[0] (Restart) matches reason Stalled" in run.told
    assert any("in read_from_a_server_that_is_gone" in text for text in logs.values()), list(logs)


def test_a_chief_frozen_with_its_supervisor_is_replaced_alone(tmp_path: Path) -> None:
    """Others of its group say that they wait for it in vain: it alone is replaced, for one restart."""
    file = job(tmp_path, "--step-seconds=0.1", workers=2)
    with LocalRun(file, tmp_path / "runs") as run:
        run.wait_for_step(STEPS + 1)
        chief = [pid for pid, environ in run.processes().items() if environ["DTJOB_ROLE"] == "chief"]
        assert len(chief) >= 2, "its supervisor and its training process"
        send_signal(chief, signal.SIGSTOP)
        code, result = run.end(400)
        run.wait_until_nothing_is_left()
    assert code == 0, run.told
    assert (result["phase"], result["steps"]) == ("Succeeded", EPOCHS * STEPS)
    assert result["restarts"]["byCause"] == {"Stalled": 1}, run.told
    assert "chief-0 stalled: its supervisor is silent, and its group waits for it" in run.told
    assert "worker-0 stalled" not in run.told
    assert "worker-1 stalled" not in run.told
