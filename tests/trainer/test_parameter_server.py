# SPDX-License-Identifier: Apache-2.0
"""ParameterServer with real processes: exact counts undisturbed; kills of each role; signals."""

import signal
import struct
from pathlib import Path

import pytest

from tests.trainer.support.harness import LEARNT, Cluster, saved_arrays

COUNTS = {"chief": 1, "worker": 2, "ps": 1}
STEPS_PER_EPOCH, HELD, BEFORE = 16, 48, 40
CHECKPOINT = {"everySteps": 10}


def held(directory: Path, *args: str, epochs: int = 6) -> Cluster:
    return Cluster(
        directory,
        "ParameterServer",
        COUNTS,
        "train.py",
        f"--epochs={epochs}",
        "--hold=3",
        f"--gate={directory / 'gate'}",
        *args,
        checkpoint=CHECKPOINT,
    )


def test_an_undisturbed_run_counts_every_step_and_example(tmp_path: Path) -> None:
    """The optimizer counts every step. A share of 961 examples, each counted once, is a whole number of them."""
    with Cluster(
        tmp_path,
        "ParameterServer",
        {**COUNTS, "evaluator": 1},
        "train.py",
        "--epochs=6",
        "--examples=961",
        checkpoint=CHECKPOINT,
    ) as run:
        run.start()
        run.expect_success("chief-0", "evaluator-0")
        status = run["chief-0"].status
        assert status["step"] == 6 * STEPS_PER_EPOCH
        assert status["resume"] == "approximate"
        assert status["metrics"]["val_accuracy"] > LEARNT
        assert run["evaluator-0"].status["evaluation"]["step"] == 6 * STEPS_PER_EPOCH
        arrays = saved_arrays(run.checkpoints, 6 * STEPS_PER_EPOCH)
        (iterations,) = (value for name, value in arrays.items() if name.endswith("/iteration"))
        assert struct.unpack("q", iterations) == (6 * STEPS_PER_EPOCH,)
        counts = [struct.unpack("f", v)[0] for name, v in arrays.items() if name.endswith("/count")]
        assert counts == [300.0, 300.0]  # loss and accuracy, of the last validation
        accuracy = status["metrics"]["accuracy"] * 961
        assert abs(accuracy - round(accuracy)) < 1e-3
        for task in ("worker-0", "worker-1", "ps-0"):
            run[task].kill(signal.SIGTERM)
            assert run[task].exit_code() == 143


@pytest.mark.parametrize("package", ["keras", pytest.param("tf_keras", marks=pytest.mark.slow)])
def test_each_role_is_killed_and_training_comes_back(tmp_path: Path, package: str) -> None:
    with held(tmp_path, f"--package={package}") as run:
        run.start()
        chief = run["chief-0"]
        chief.wait_for_checkpoint(BEFORE)
        chief.wait_for_step(HELD)
        run["worker-1"].kill()
        assert run["worker-1"].exit_code() == -signal.SIGKILL
        run.start("worker-1")
        run["worker-1"].wait_until(lambda status: status.get("state") == "serving", "serving")
        chief.kill()
        assert chief.exit_code() == -signal.SIGKILL
        run.start("chief-0")
        chief = run["chief-0"]
        assert chief.wait_until(lambda s: "restoredStep" in s, "restored")["restoredStep"] == BEFORE
        chief.wait_for_step(HELD)
        run["ps-0"].kill()
        (tmp_path / "gate").touch()
        assert chief.exit_code() == 75
        run.start("ps-0", "chief-0")
        run.expect_success("chief-0")
        assert run["chief-0"].status["step"] == 6 * STEPS_PER_EPOCH
        assert run["chief-0"].status["restoredStep"] >= BEFORE
        assert run["chief-0"].status["metrics"]["val_accuracy"] > LEARNT


@pytest.mark.parametrize("loop", ["fit", "train"])
def test_workers_train_side_by_side_if_a_step_takes_longer_than_a_report(tmp_path: Path, loop: str) -> None:
    with Cluster(tmp_path, "ParameterServer", COUNTS, "side_by_side.py", loop) as run:
        run.start()
        run.expect_success("chief-0")


@pytest.mark.parametrize("shards", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_step_touches_only_the_rows_of_a_table_that_it_looks_up(tmp_path: Path, shards: int) -> None:
    options = {"partitioner": {"fixedShards": shards}} if shards else {}
    with Cluster(tmp_path, "ParameterServer", {**COUNTS, "ps": 2}, "tables_in_place.py", options=options) as run:
        run.start()
        run.expect_success("chief-0")


@pytest.mark.slow
def test_validation_is_handed_out_as_workers_take_it(tmp_path: Path) -> None:
    """All that is handed out is in the chief's memory."""
    with Cluster(tmp_path, "ParameterServer", COUNTS, "validation_ahead.py") as run:
        run.start()
        run.expect_success("chief-0")


def test_signals_save_before_the_ps_goes(tmp_path: Path) -> None:
    with held(tmp_path) as run:
        run.start()
        chief = run["chief-0"]
        chief.wait_for_step(HELD)
        run["ps-0"].kill(signal.SIGTERM)
        chief.say({"peerPreempted": "ps-0"})
        (tmp_path / "gate").touch()
        assert (chief.exit_code(), run["ps-0"].exit_code()) == (75, 143)
        first = chief.status["checkpoint"]["step"]
        assert first >= HELD
        (tmp_path / "gate").unlink()
        run.start("ps-0", "chief-0")
        chief = run["chief-0"]
        chief.wait_until(lambda s: s.get("restoredStep") == first and s.get("state") == "training", "training")
        for task in run.tasks:
            run[task].kill(signal.SIGTERM)
        (tmp_path / "gate").touch()
        assert {run[task].exit_code() for task in run.tasks} == {143}
        assert chief.status["checkpoint"]["step"] >= first
