# SPDX-License-Identifier: Apache-2.0
"""Data of which nobody knows the length: where its epochs end in all tasks, and how a run on it resumes."""

import json
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, saved_arrays

EPOCHS, STEPS_PER_EPOCH, EVERY = 6, 16, 10
LAST, HELD = EPOCHS * STEPS_PER_EPOCH, 3 * STEPS_PER_EPOCH
BATCH, N = 12, 90


def history(directory: Path, kind: str, counts: dict[str, int]) -> tuple[dict[str, list[float]], Cluster]:
    """What data_lengths.py told under MultiWorkerMirrored."""
    with Cluster(directory, "MultiWorkerMirrored", counts, "data_lengths.py", kind) as run:
        run.run()
        line = next(line for line in run.members[run.tasks[0]].output().splitlines() if line.startswith("history "))
        found: dict[str, list[float]] = json.loads(line.removeprefix("history "))
        return found, run


def assert_counted(found: dict[str, list[float]], examples: list[int]) -> None:
    """In each epoch every one of the first so many examples counts once."""
    assert found["numbers"] == [count * (count - 1) / 2 for count in examples]
    means = [sum(found["values"][:count]) / count for count in examples]
    assert found["loss"] == pytest.approx(means, rel=1e-6)


@pytest.mark.parametrize(
    "kind", ["shards", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("ragged", "sparse"))]
)
def test_tasks_whose_shards_end_at_different_steps_count_every_example_once(tmp_path: Path, kind: str) -> None:
    """A task that has come to its end stands in with a row that must break nothing."""
    found, run = history(tmp_path, kind, {"worker": 3})
    assert_counted(found, [N] * 3)
    assert run["worker-0"].status["step"] == run["worker-0"].status["totalSteps"] == 3 * 60 // (BATCH // 3)


@pytest.mark.parametrize("package", ["keras", pytest.param("tf_keras", marks=pytest.mark.slow)])
def test_moving_statistics_are_of_examples_alone(tmp_path: Path, package: str) -> None:
    """Not of the rows with which a task stands in that has come to its end, or never had an example."""
    program = "idle_statistics.py", f"--package={package}"
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 3}, *program) as run:
        run.run()
        for task in run.tasks:
            line = next(line for line in run[task].output().splitlines() if line.startswith("kept "))
            mean, variance = json.loads(line.removeprefix("kept "))
            assert (mean, variance) == (pytest.approx(5.0, abs=0.01), pytest.approx(0.0, abs=0.01))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "batches"), [("unlike", [2, 2, 2]), ("varying", [5, 2, 7])])
def test_an_epoch_ends_at_the_same_step_in_all_tasks(tmp_path: Path, kind: str, batches: list[int]) -> None:
    found, run = history(tmp_path, kind, {"worker": 2})
    assert_counted(found, [count * BATCH for count in batches])
    assert run["worker-0"].status["step"] == sum(batches)
    assert ("must be the same in all" in run["worker-0"].output()) == (kind == "unlike")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        # what is read ahead at an epoch's end is of the order before, and a restart reads it in the new one
        ([], "batches of the PyDataset are read ahead before its on_epoch_end(); leave out steps_per_epoch"),
        (
            ["generator"],
            "the Dataset calls Python code (from_generator, py_function or numpy_function), which may",
        ),
    ],
)
def test_data_that_a_new_process_would_read_otherwise_is_not_called_exact(
    tmp_path: Path, arguments: list[str], reason: str
) -> None:
    checkpoint = {"everySteps": 100}
    with Cluster(tmp_path, "Default", {"chief": 1}, "spanning_pass.py", *arguments, checkpoint=checkpoint) as run:
        run.run()
        assert run["chief-0"].status["resume"] == "approximate"
        assert f"resume is approximate: {reason}" in run["chief-0"].output()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "counts", "data"),
    [
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, "filtered"),
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, "py"),
        ("Mirrored", {"chief": 1}, "filtered"),
        ("CentralStorage", {"chief": 1}, "filtered"),
        ("CentralStorage", {"chief": 1}, "py"),
        ("Default", {"chief": 1}, "generator"),
        ("Mirrored", {"chief": 1}, "generator"),
    ],
)
def test_killed_and_resumed_run_ends_with_the_same_bits(
    tmp_path: Path, strategy: str, counts: dict[str, int], data: str
) -> None:
    options = {"logicalCPUs": 2} if strategy in ("Mirrored", "CentralStorage") else {}
    ends = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        gate = directory / "gate"
        program = ("train.py", f"--data={data}", "--hold=3", f"--gate={gate}", "--chief-holds")
        with Cluster(directory, strategy, counts, *program, checkpoint={"everySteps": EVERY}, options=options) as run:
            run.start()
            run["chief-0"].wait_for_checkpoint(HELD // EVERY * EVERY)
            if killed:
                run["chief-0"].wait_for_step(HELD)
                run["chief-0"].kill()
                assert run["chief-0"].exit_code() == -signal.SIGKILL
                for task in run.tasks[1:]:
                    assert run[task].exit_code() == 75
                run.start()
            gate.touch()
            run.expect_success()
            chief = run["chief-0"]
            assert chief.status["resume"] == "exact"
            assert chief.status["step"] == chief.status["totalSteps"] == LAST
            first = next(line for line in chief.lines if line.get("state") == "training")
            assert ("totalSteps" in first) == (killed or data != "filtered")  # found in the first epoch, and kept
            ends.append((saved_arrays(run.checkpoints, LAST), chief.status["metrics"]))
    assert ends[0] == ends[1]
