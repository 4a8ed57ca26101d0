# SPDX-License-Identifier: Apache-2.0
"""SIGTERM while a validation runs: it is broken off, its epoch's end comes after the restart, and no bit differs.

What the undisturbed run writes for TensorBoard is read back here too, as is what the two processes of the other one do.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.event_files import scalars
from tests.trainer.support.harness import Cluster, saved_arrays

EPOCHS, STEPS_PER_EPOCH, EVERY = 3, 16, 5
LAST = EPOCHS * STEPS_PER_EPOCH
BOARD = {"everySteps": EVERY}


def held(directory: Path, strategy: str, counts: dict[str, int], *arguments: str) -> Cluster:
    return Cluster(
        directory,
        strategy,
        counts,
        "train.py",
        f"--epochs={EPOCHS}",
        f"--wait-in-validation={directory / 'gate'}",
        *arguments,
        checkpoint={"everySteps": 10},
        env={"DTJOB_TENSORBOARD": json.dumps(BOARD)},
    )


def ended(run: Cluster, chief: str) -> tuple[Any, ...]:
    assert run[chief].status["resume"] == ("approximate" if run.strategy == "ParameterServer" else "exact")
    return saved_arrays(run.checkpoints, LAST), run[chief].status["metrics"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("undisturbed")
    with held(directory, "Default", {"chief": 1}) as run:
        (directory / "gate").touch()
        run.run()
        yield run


def test_tensorboard_shows_steps_and_epochs(undisturbed: Cluster) -> None:
    events = undisturbed.checkpoints / "events" / "train"
    found = scalars(events)
    steps = list(range(EVERY, LAST + 1, EVERY))
    for tag in ("loss", "accuracy", "learning_rate"):
        assert [step for step, _ in found[tag]] == steps, tag
    assert [step for step, _ in found["steps_per_second"]] == steps  # the first step alone tells nothing
    assert all(value == pytest.approx(0.005) for _, value in found["learning_rate"])
    metrics = undisturbed["chief-0"].status["metrics"]
    for name, value in metrics.items():
        tag = name if name.startswith("val_") else f"epoch_{name}"
        assert [step for step, _ in found[tag]] == list(range(STEPS_PER_EPOCH, LAST + 1, STEPS_PER_EPOCH))
        assert found[tag][-1][1] == pytest.approx(value, rel=1e-6)


def test_a_validation_is_broken_off_and_done_again(tmp_path: Path, undisturbed: Cluster) -> None:
    with held(tmp_path, "Default", {"chief": 1}) as run:
        run.start()
        waiting = tmp_path / f"gate.{run['chief-0'].process.pid}"
        run["chief-0"].wait_for_file(waiting)
        run["chief-0"].kill(signal.SIGTERM)
        assert run["chief-0"].exit_code() == 143
        assert run["chief-0"].status["checkpoint"]["step"] == STEPS_PER_EPOCH
        assert run["chief-0"].status["epoch"] == 0, "its end is still to come"
        run.run()
        assert run["chief-0"].status["restoredStep"] == STEPS_PER_EPOCH
        assert ended(run, "chief-0") == ended(undisturbed, "chief-0")
        after, before = (scalars(each.checkpoints / "events" / "train") for each in (run, undisturbed))
        del after["steps_per_second"], before["steps_per_second"]
        assert after == before


@pytest.mark.slow
def test_an_epoch_that_a_callback_cut_short_is_ended_after_a_kill(tmp_path: Path) -> None:
    """It stops at step 10, where a save is due too, and is killed in the validation that follows."""
    ends = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        with held(directory, "Default", {"chief": 1}, "--stop-at=10") as run:
            if killed:
                run.start()
                run["chief-0"].wait_for_file(directory / f"gate.{run['chief-0'].process.pid}")
                run["chief-0"].kill()
                assert run["chief-0"].exit_code() == -signal.SIGKILL
            (directory / "gate").touch()
            run.run()
            ends.append((saved_arrays(run.checkpoints, 10), run["chief-0"].status["metrics"]))
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_all_tasks_break_off_together(tmp_path: Path) -> None:
    """Where they agree too late for this validation, they do at its end: at this step in any case."""
    ends = []
    for disturbed in (False, True):
        directory = tmp_path / str(disturbed)
        with held(directory, "MultiWorkerMirrored", {"worker": 2}) as run:
            if disturbed:
                run.start()
                for task in run.tasks:
                    run[task].wait_for_file(directory / f"gate.{run[task].process.pid}")
                run["worker-1"].kill(signal.SIGTERM)
                assert [run[task].exit_code() for task in run.tasks] == [75, 143]
                assert {run[task].status["step"] for task in run.tasks} == {STEPS_PER_EPOCH}
                assert run["worker-0"].status["checkpoint"]["step"] == STEPS_PER_EPOCH
            (directory / "gate").touch()
            run.run()
            ends.append(ended(run, "worker-0"))
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_a_coordinator_does_not_wait_for_batches_that_are_handed_out(tmp_path: Path) -> None:
    with held(tmp_path, "ParameterServer", {"chief": 1, "worker": 1, "ps": 1}) as run:
        run.start()
        run["chief-0"].wait_for_file(tmp_path / f"gate.{run['chief-0'].process.pid}")
        run["chief-0"].kill(signal.SIGTERM)
        assert run["chief-0"].exit_code() == 143
        assert run["chief-0"].status["checkpoint"]["step"] == STEPS_PER_EPOCH
        assert run["chief-0"].status["epoch"] == 0
        run.start("chief-0")
        run.expect_success("chief-0")
        assert run["chief-0"].status["step"] == LAST
        assert len(scalars(run.checkpoints / "events" / "train")["val_loss"]) == EPOCHS
