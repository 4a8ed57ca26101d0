# SPDX-License-Identifier: Apache-2.0
"""Training that makes no step, with TensorFlow's processes: found, named, its stack logged, and brought back."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtjob.plan.record.failure import ProgramEnd
from tests.trainer.support.harness import PROGRAMS
from tests.trainer.support.supervisors import Job, Running, wait_until

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.timeout(600)

LEAST_LIMIT, MOST_LIMIT = 5, 30
EPOCHS, STEPS = 6, 8
WAIT = 600.0


def limit_here() -> int:
    """Seconds without a step that are a stall: more where others want the cores too, as to begin an epoch takes a
    second of them, and is no stall."""
    share = os.getloadavg()[0] / (os.cpu_count() or 1)
    return round(min(max(LEAST_LIMIT * share, LEAST_LIMIT), MOST_LIMIT))


class Stalling:
    """A job of stalling.py under supervisors that look out for stalls."""

    def __init__(
        self, directory: Path, strategy: str, counts: dict[str, int], *arguments: str, limit: int | None = None
    ) -> None:
        limit = limit_here() if limit is None else limit
        directory.mkdir(exist_ok=True)
        self.job = Job(directory, strategy, **counts)
        self.job.command = ["-m", "dtjob_trainer.run", str(PROGRAMS / "stalling.py"), *arguments]
        self._checkpoints = directory / "checkpoints"
        self._environ = {
            "DTJOB_STALL_TIMEOUT_SECONDS": str(limit),
            "DTJOB_CHECKPOINT": json.dumps({"directory": str(self._checkpoints), "everySteps": STEPS}),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        tasks = [f"{role}-{index}" for role, count in counts.items() for index in range(count)]
        self.running = {task: self.start(task) for task in tasks}

    def start(self, task: str) -> Running:
        """Start the next attempt at the task, as the operator would."""
        running = self.job.start(task, environ=self._environ)
        self.running = {**getattr(self, "running", {}), task: running}
        return running

    def wait_for_step(self, step: int) -> None:
        chief = self.running["chief-0"]

        def done() -> bool:
            assert chief.process.poll() is None, self.logs()
            return (chief.status().get("step") or 0) >= step

        wait_until(done, f"step {step}", WAIT)

    def stop(self, task: str) -> None:
        """SIGSTOP to the training process alone."""
        os.kill(self.running[task].status()["trainingPid"], signal.SIGSTOP)

    def expect_stall(self, task: str) -> tuple[ProgramEnd, str]:
        """The end of the task over a stall: what its supervisor tells, and its log."""
        running = self.running[task]
        assert running.end(WAIT) == 77, self.logs()
        log = running.log.read_text()
        return ProgramEnd.of(log), log

    def expect_success(self, *tasks: str) -> dict[str, Any]:
        """All of these tasks end well. The last status of the run."""
        codes = {task: self.running[task].end(WAIT) for task in tasks}
        assert codes == dict.fromkeys(tasks, 0), self.logs()
        mark: dict[str, Any] = json.loads((self._checkpoints / "DONE").read_text())
        assert mark["step"] == EPOCHS * STEPS
        return dict(mark["status"])

    def logs(self) -> str:
        return "\n".join(f"--- {task}\n{running.log.read_text()}" for task, running in self.running.items())


@pytest.fixture
def stalling() -> Iterator[Any]:
    made: list[Stalling] = []

    def make(*arguments: Any, **limit: int) -> Stalling:
        made.append(Stalling(*arguments, **limit))
        return made[-1]

    yield make
    for each in made:
        each.job.end()


GROUP = {"chief": 1, "worker": 2}
TASKS = ("chief-0", "worker-0", "worker-1")
SERVERS = {"chief": 1, "worker": 2, "ps": 1}


@pytest.mark.slow  # without TensorFlow: test_supervisor_stalls.py
@pytest.mark.parametrize("data", ["data", "unknown"])
def test_a_hanging_data_function_is_found_as_the_stall(stalling: Any, tmp_path: Path, data: str) -> None:
    """In one task of three: the others wait for it in a step, as do all for whoever is stopped then."""
    run = stalling(tmp_path, "MultiWorkerMirrored", GROUP, f"--hang={data}", "--task=worker-1", f"--epochs={EPOCHS}")
    found, log = run.expect_stall("worker-1")
    assert found.straggler == "worker-1", log
    # it reads one batch ahead of a call's last step, which the others are done with
    assert found.behind.endswith("in its data function"), log
    assert "in read_from_a_server_that_is_gone" in log
    run.start("worker-1")
    disturbed = run.expect_success(*TASKS)
    if data == "data":
        return
    whole = stalling(tmp_path / "whole", "MultiWorkerMirrored", GROUP, f"--hang={data}", f"--epochs={EPOCHS}")
    assert whole.expect_success(*TASKS)["metrics"] == disturbed["metrics"]
    for task in TASKS:
        assert "stalled" not in whole.running[task].log.read_text()


@pytest.mark.slow
def test_a_stopped_worker_is_the_straggler(stalling: Any, tmp_path: Path) -> None:
    """TensorFlow's heartbeat tells its peers before there was no step for so long; it is the one that is counted."""
    run = stalling(tmp_path, "MultiWorkerMirrored", GROUP, "--step-seconds=0.1", f"--epochs={EPOCHS}")
    run.wait_for_step(STEPS + 1)  # in an epoch, as a validation may take as long as it likes
    run.stop("worker-0")
    found, log = run.expect_stall("worker-0")
    assert (found.straggler, found.behind) == ("worker-0", "its process is stopped (SIGSTOP)")
    assert "most recent call first" in log
    run.start("worker-0")
    run.expect_success(*TASKS)


@pytest.mark.slow
def test_a_task_that_does_not_join_a_collective_is_the_straggler(stalling: Any, tmp_path: Path) -> None:
    """It waits for what the others come to only after that."""
    run = stalling(tmp_path, "MultiWorkerMirrored", GROUP, "--hang=collective", "--task=worker-1", f"--epochs={EPOCHS}")
    found, log = run.expect_stall("worker-1")
    assert (found.straggler, found.behind) == ("worker-1", "in a callback")
    assert "in wait_for_the_chiefs_file" in log
    run.start("worker-1")
    run.expect_success(*TASKS)


@pytest.mark.slow
def test_a_stopped_worker_of_parameter_server_is_the_straggler(stalling: Any, tmp_path: Path) -> None:
    """The chief waits for its step; once that worker is gone, the other one takes it."""
    run = stalling(tmp_path, "ParameterServer", SERVERS, "--step-seconds=0.1", f"--epochs={EPOCHS}")
    run.wait_for_step(STEPS + 1)  # in an epoch, as a validation may take as long as it likes
    run.stop("worker-1")
    found, log = run.expect_stall("worker-1")
    assert (found.straggler, found.behind) == ("worker-1", "its process is stopped (SIGSTOP)")
    assert "most recent call first" in log
    run.start("worker-1")
    run.expect_success("chief-0")
    assert "stalled" not in run.running["chief-0"].log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["ps-0", "chief-0"])
def test_a_stopped_task_of_parameter_server_is_the_straggler(stalling: Any, tmp_path: Path, task: str) -> None:
    run = stalling(tmp_path, "ParameterServer", SERVERS, "--step-seconds=0.1", f"--epochs={EPOCHS}")
    run.wait_for_step(STEPS + 1)  # in an epoch, as a validation may take as long as it likes
    run.stop(task)
    found, _ = run.expect_stall(task)
    assert (found.straggler, found.behind) == (task, "its process is stopped (SIGSTOP)")
    run.start(task)
    run.expect_success("chief-0")


@pytest.mark.slow
def test_a_frozen_container_of_parameter_server_is_named_by_the_chief(stalling: Any, tmp_path: Path) -> None:
    """Its supervisor with it: the chief ends in its place, and names it."""
    run = stalling(tmp_path, "ParameterServer", SERVERS, "--step-seconds=0.1", f"--epochs={EPOCHS}")
    run.wait_for_step(STEPS + 1)  # in an epoch, as a validation may take as long as it likes
    frozen = run.running["worker-1"]
    run.stop("worker-1")
    frozen.process.send_signal(signal.SIGSTOP)
    found, _ = run.expect_stall("chief-0")
    assert (found.straggler, found.behind) == ("worker-1", "its supervisor is silent")
    frozen.process.kill()
    frozen.process.wait()
    run.start("worker-1")
    run.start("chief-0")
    run.expect_success("chief-0")


@pytest.mark.slow
def test_a_hanging_data_function_of_a_parameter_server_chief_is_found_as_the_stall(
    stalling: Any, tmp_path: Path
) -> None:
    run = stalling(tmp_path, "ParameterServer", SERVERS, "--hang=data", "--task=chief-0", f"--epochs={EPOCHS}")
    found, log = run.expect_stall("chief-0")
    assert (found.straggler, found.behind) == ("chief-0", "in its data function")
    assert "in read_from_a_server_that_is_gone" in log
    run.start("chief-0")
    run.expect_success("chief-0")


@pytest.mark.slow
@pytest.mark.timeout(1500)  # on a busy machine the limit is long, and ten things are slower than it
def test_a_slow_first_batch_validation_save_or_restore_is_no_stall(stalling: Any, tmp_path: Path) -> None:
    """The first batch, compiling, each validation, each save, and restoring."""
    limit = limit_here()
    arguments = (f"--slow={limit + 2}", "--step-seconds=0.1", f"--epochs={EPOCHS}")
    run = stalling(tmp_path, "Default", {"chief": 1}, *arguments, limit=limit)
    run.wait_for_step(2 * STEPS + 1)
    os.kill(run.running["chief-0"].pid, signal.SIGKILL)
    run.running["chief-0"].end()
    run.start("chief-0")
    run.expect_success("chief-0")
    assert "stalled" not in run.logs()


@pytest.mark.slow
def test_a_group_that_waits_for_a_frozen_container_says_for_whom(stalling: Any, tmp_path: Path) -> None:
    """The operator knows whether that pod runs, and replaces it."""
    run = stalling(tmp_path, "MultiWorkerMirrored", GROUP, "--step-seconds=0.1", f"--epochs={EPOCHS}")
    run.wait_for_step(STEPS + 1)  # in an epoch, as a validation may take as long as it likes
    frozen = run.running["worker-1"]
    run.stop("worker-1")
    frozen.process.send_signal(signal.SIGSTOP)
    chief = run.running["chief-0"]
    wait_until(lambda: chief.status().get("silent"), "a task that is silent", WAIT)
    assert chief.status()["silent"] == {"worker-1": 0}
    frozen.process.kill()
    frozen.process.wait()
    run.start("worker-1")
    run.expect_success(*TASKS)
    assert "silent" not in chief.log.read_text()
