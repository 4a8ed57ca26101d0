# SPDX-License-Identifier: Apache-2.0
"""A group of another number of workers goes on within an epoch: no example is lost or counted twice, steps and the
global batch stay, and where batches are the same ones the numbers are one device's."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import Cluster

N, STEPS, EPOCHS = 121, 16, 2
GROUPS = ((2, 7), (1, 9), (3, 0))
"""Workers, and the example before which each of their processes waits: in its third step; the last group does not."""


def told(run: Cluster) -> dict[str, Any]:
    """What the chief printed at the end."""
    (line,) = (one for one in run["chief-0"].output().splitlines() if one.startswith("told "))
    found: dict[str, Any] = json.loads(line.removeprefix("told "))
    return found


def test_a_scaled_learning_rate_stays_what_it_was(tmp_path: Path) -> None:
    """A schedule's too: the global batch is the same whoever computes it."""
    for epochs, workers in ((1, 2), (2, 3)):
        directory, counts = tmp_path / str(workers), {"worker": workers}
        checkpoint = {"everySteps": 100, "directory": str(tmp_path / "checkpoints")}
        program = "scaled_rate.py", str(epochs)
        with Cluster(directory, "MultiWorkerMirrored", counts, *program, checkpoint=checkpoint) as run:
            run.run()
            lines = run["worker-0"].output().splitlines()
            assert [line for line in lines if line.startswith("rate")] == ["rate 0.2"], lines


def test_a_rate_that_depends_on_the_number_of_replicas_may_be_another_one_after_the_end(tmp_path: Path) -> None:
    for workers in (1, 2):
        checkpoint = {"everySteps": 100, "directory": str(tmp_path / "checkpoints")}
        counts = {"worker": workers}
        with Cluster(
            tmp_path / str(workers), "MultiWorkerMirrored", counts, "rate_of_replicas.py", checkpoint=checkpoint
        ) as run:
            run.run()
            assert f"trained by {workers}" in run["worker-0"].output()


def one_device(directory: Path, data: str) -> dict[str, Any]:
    with Cluster(directory, "Default", {"chief": 1}, "resized.py", f"--data={data}") as run:
        run.run()
        return told(run)


def resized(directory: Path, strategy: str, data: str) -> dict[str, Any]:
    """1 chief with 2, then 1, then 3 workers, each but the last told to end within the first epoch. What the last chief
    told."""
    step = 0
    for number, (workers, hold) in enumerate(GROUPS):
        counts = {"chief": 1, "worker": workers}
        if strategy == "ParameterServer":
            counts["ps"], hold = 1, hold and 4 * 8 + 1
        gate = directory / f"gate-{number}"
        checkpoint = {"everySteps": 1000, "directory": str(directory / "checkpoints")}
        arguments = ("resized.py", f"--data={data}", f"--hold={hold}", f"--gate={gate}")
        with Cluster(directory / str(number), strategy, counts, *arguments, checkpoint=checkpoint) as run:
            run.start()
            chief = run["chief-0"]
            if hold:
                chief.wait_for_step(step + 1)
                for task in run.tasks:
                    run[task].kill(signal.SIGTERM)
                gate.touch()
                assert {run[task].exit_code() for task in run.tasks} == {143}, chief.output()
            else:
                run.expect_success(*(["chief-0"] if strategy == "ParameterServer" else run.tasks))
            status = chief.status
            assert status["restoredStep"] == step
            assert status["totalSteps"] == EPOCHS * STEPS
            step, before = status["checkpoint"]["step"], step
            assert step == status["step"] > before
            if hold:
                assert step < STEPS, "it was told within the first epoch"
            else:
                assert (step, status["resume"]) == (EPOCHS * STEPS, "approximate")
                return told(run)
    raise AssertionError


@pytest.mark.parametrize(
    ("strategy", "data"),
    [
        ("MultiWorkerMirrored", "files"),
        pytest.param("ParameterServer", "files", marks=pytest.mark.slow),
        pytest.param("MultiWorkerMirrored", "shuffled", marks=pytest.mark.slow),
        pytest.param("ParameterServer", "dataset", marks=pytest.mark.slow),
    ],
)
def test_every_example_of_an_epoch_counts_once(tmp_path: Path, strategy: str, data: str) -> None:
    found = resized(tmp_path, strategy, data)
    history = found["history"]
    assert history["sum_of"] == pytest.approx([sum(range(N)) / N] * EPOCHS, rel=1e-5)
    assert history["squares_of"] == pytest.approx([sum(n * n for n in range(N)) / N] * EPOCHS, rel=1e-5)
    if strategy == "MultiWorkerMirrored" and data != "files":  # else the same examples come in other batches
        alone = one_device(tmp_path / "alone", data)
        assert found["weights"] == pytest.approx(alone["weights"], rel=1e-5)
        assert history["loss"] == pytest.approx(alone["history"]["loss"], rel=1e-4)
