# SPDX-License-Identifier: Apache-2.0
"""tf_keras models in `fit` with real processes: evaluated, saved, and after kills the same bits, Dropout included."""

import signal
import struct
from pathlib import Path

import pytest

from tests.trainer.support.event_files import scalars
from tests.trainer.support.harness import DIGITS, LEARNT, Cluster, by_hand, saved_arrays

EPOCHS, STEPS_PER_EPOCH, EVERY = 6, 16, 10
LAST, HELD = EPOCHS * STEPS_PER_EPOCH, 3 * STEPS_PER_EPOCH
BEFORE = HELD // EVERY * EVERY
"""The newest checkpoint where a held run waits."""
CHECKPOINT = {"everySteps": EVERY}
TWO = {"logicalCPUs": 2}
LOADED = """
import sys, numpy as np, tf_keras
digits = np.load(sys.argv[2])
images = (digits["images"] / 16.0)[..., None].astype("float32")
print(tf_keras.models.load_model(sys.argv[1]).evaluate(images[-300:], digits["target"][-300:], verbose=0)[1])
"""


def test_a_group_trains_with_an_evaluator_and_saves_the_model(tmp_path: Path) -> None:
    counts = {"chief": 1, "worker": 1, "evaluator": 1}
    with Cluster(
        tmp_path, "MultiWorkerMirrored", counts, "train.py", "--package=tf_keras", checkpoint=CHECKPOINT
    ) as run:
        run.run()
        status, evaluation = run["chief-0"].status, run["evaluator-0"].status["evaluation"]
        assert status["resume"] == "exact", run["chief-0"].output()
        assert status["metrics"]["val_accuracy"] > 0.8
        assert evaluation["step"] == LAST
        assert evaluation["metrics"]["accuracy"] == pytest.approx(status["metrics"]["val_accuracy"], abs=1e-6)
        assert evaluation["metrics"]["loss"] == pytest.approx(status["metrics"]["val_loss"], rel=1e-4)
        said = by_hand(LOADED, status["model"], str(DIGITS), directory=tmp_path)
        accuracy = float(said.splitlines()[-1])
        assert accuracy == pytest.approx(status["metrics"]["val_accuracy"], abs=1e-6)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("strategy", "counts", "victim", "options"),
    [
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, "worker-0", {}),
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, "chief-0", {}),
        ("Mirrored", {"chief": 1}, "chief-0", TWO),
        ("Default", {"chief": 1}, "chief-0", {}),
        ("CentralStorage", {"chief": 1}, "chief-0", TWO),
    ],
)
def test_killed_and_resumed_run_ends_with_the_same_bits(
    tmp_path: Path, strategy: str, counts: dict[str, int], victim: str, options: dict[str, int]
) -> None:
    """With Dropout, BatchNormalization, Adam, and callbacks that have a state and files."""
    arguments = ("--package=tf_keras", "--hold=3", "--callbacks", "--data=function", "--examples=962")
    ends = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        gate = directory / "gate"
        with Cluster(
            directory,
            strategy,
            counts,
            "train.py",
            *arguments,
            f"--gate={gate}",
            checkpoint=CHECKPOINT,
            options=options,
        ) as run:
            run.start()
            if killed:
                run["chief-0"].wait_for_checkpoint(BEFORE)
                for task in run.tasks:
                    run[task].wait_for_step(HELD)
                run[victim].kill()
                gate.touch()
                assert run[victim].exit_code() == -signal.SIGKILL
                for task in run.tasks:
                    assert task == victim or run[task].exit_code() == 75
                run.start()
            gate.touch()
            run.expect_success()
            status = run["chief-0"].status
            assert status.get("restoredStep") == (BEFORE if killed else 0)
            assert status["resume"] == "exact", run["chief-0"].output()
            rows = (run.directory / "log.csv").read_text()
            points = scalars(run.directory / "board" / "train")
            # as after a restart under Keras's own fit, points of steps that were done twice are there twice
            board = {tag: dict(points[tag]) for tag in ("epoch_loss", "epoch_accuracy", "batch_loss")}
            assert len(board["epoch_loss"]) == len(dict(points["epoch_steps_per_second"])) == EPOCHS
            ends.append((saved_arrays(run.checkpoints, LAST), status["metrics"], rows, board))
    assert ends[0] == ends[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "counts", "options"),
    [("MultiWorkerMirrored", {"worker": 2}, {}), ("Mirrored", {"chief": 1}, TWO), ("Default", {"chief": 1}, {})],
)
def test_models_with_their_own_step_and_batch_callbacks_train(
    tmp_path: Path, strategy: str, counts: dict[str, int], options: dict[str, int]
) -> None:
    with Cluster(tmp_path, strategy, counts, "own_step.py", "--package=tf_keras", options=options) as run:
        run.run()
        assert "all well" in next(iter(run.members.values())).output()


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
@pytest.mark.parametrize(
    ("strategy", "counts", "options"),
    [
        ("MultiWorkerMirrored", {"worker": 2}, {}),
        pytest.param("Mirrored", {"chief": 1}, TWO, marks=pytest.mark.slow),
    ],
)
def test_metrics_are_read_in_one_exchange(
    tmp_path: Path, strategy: str, counts: dict[str, int], options: dict[str, int], package: str
) -> None:
    """And as tf_keras reads them, which makes an exchange for each of their variables."""
    with Cluster(tmp_path, strategy, counts, "read_metrics.py", f"--package={package}", options=options) as run:
        run.run()
        assert "all well" in next(iter(run.members.values())).output()


@pytest.mark.slow
def test_parameter_server_counts_every_step_and_example(tmp_path: Path) -> None:
    counts = {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}
    arguments = ("--package=tf_keras", "--epochs=6", "--examples=961")
    with Cluster(tmp_path, "ParameterServer", counts, "train.py", *arguments, checkpoint=CHECKPOINT) as run:
        run.start()
        run.expect_success("chief-0", "evaluator-0")
        status = run["chief-0"].status
        assert (status["step"], status["resume"]) == (LAST, "approximate")
        assert status["metrics"]["val_accuracy"] > LEARNT
        arrays = saved_arrays(run.checkpoints, LAST)
        (iterations,) = (value for name, value in arrays.items() if name.endswith("/iteration:0"))
        assert struct.unpack("q", iterations) == (LAST,)
        counts = [struct.unpack("f", v)[0] for name, v in arrays.items() if name.endswith("/count:0")]
        assert counts == [300.0, 300.0]  # loss and accuracy, of the last validation
        accuracy = status["metrics"]["accuracy"] * 961
        assert abs(accuracy - round(accuracy)) < 1e-3
        evaluation = run["evaluator-0"].status["evaluation"]
        assert evaluation["metrics"]["accuracy"] == pytest.approx(status["metrics"]["val_accuracy"], abs=1e-6)


def test_variables_that_a_layer_creates_only_in_training_are_trained_and_saved(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "layers_in_training.py", checkpoint={"everySteps": 1}) as run:
        run.run()
        assert "variables 4" in run["chief-0"].output()
        assert run["chief-0"].status["resume"] == "exact"
        assert any("block/dense" in name for name in saved_arrays(run.checkpoints, 2))
