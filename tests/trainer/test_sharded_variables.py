# SPDX-License-Identifier: Apache-2.0
"""ParameterServer with a partitioner: Keras 3 models whose variables lie in shards, on one and two ps."""

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import LEARNT, Cluster, saved_arrays

EPOCHS, STEPS_PER_EPOCH = 10, 16


def cluster(directory: Path, ps: int, partitioner: dict[str, Any], program: str, *args: str, **more: Any) -> Cluster:
    counts = {"chief": 1, "worker": 2, "ps": ps}
    return Cluster(directory, "ParameterServer", counts, program, *args, options={"partitioner": partitioner}, **more)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("ps", "partitioner", "other"),
    [
        (2, {"fixedShards": 2}, {"fixedShards": 3}),
        pytest.param(1, {"minShardBytes": 400, "maxShards": 3}, {"maxShardBytes": 1000}, marks=pytest.mark.slow),
    ],
)
def test_every_step_counts_and_another_partition_goes_on(
    tmp_path: Path, ps: int, partitioner: dict[str, Any], other: dict[str, Any]
) -> None:
    """160 scheduled steps count 160, and each of 961 examples once; the checkpoint does not know of shards."""
    checkpoint = {"everySteps": 40, "directory": str(tmp_path / "checkpoints")}
    steps = EPOCHS * STEPS_PER_EPOCH
    with cluster(
        tmp_path / "first",
        ps,
        partitioner,
        "train.py",
        f"--epochs={EPOCHS}",
        "--examples=961",
        "--piece-bytes=600",
        checkpoint=checkpoint,
    ) as run:
        run.start()
        for step in range(40, steps, 40):  # patience for each part, on machines that have other work
            run["chief-0"].wait_for_step(step)
        run.expect_success("chief-0")
        status = run["chief-0"].status
        assert status["step"] == steps == 160
        assert status["metrics"]["val_accuracy"] > LEARNT
        accuracy = status["metrics"]["accuracy"] * 961
        assert abs(accuracy - round(accuracy)) < 1e-3
        assert len(list((tmp_path / "checkpoints").glob(f"ckpt-{steps}.data-*"))) > 10, "it passed through in pieces"
        arrays = saved_arrays(tmp_path / "checkpoints", steps)
        (iterations,) = (value for name, value in arrays.items() if name.endswith("/iteration"))
        assert struct.unpack("q", iterations) == (160,)
    with cluster(
        tmp_path / "second",
        ps,
        other,
        "train.py",
        f"--epochs={EPOCHS + 2}",
        "--examples=961",
        "--weight-decay=0.01",
        "--piece-bytes=1000",
        checkpoint=checkpoint,
        uid="uid-2",
    ) as run:
        run.start()
        run.expect_success("chief-0")
        status = run["chief-0"].status
        assert (status["restoredStep"], status["step"]) == (160, 160 + 2 * STEPS_PER_EPOCH)
        assert status["metrics"]["val_accuracy"] > LEARNT


def test_a_train_step_of_its_own_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path, 1, {"fixedShards": 2}, "own_step_in_shards.py") as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "strategyOptions.partitioner cuts variable" in run["chief-0"].output()
        assert "leave partitioner out, or the train_step" in run["chief-0"].output()


@pytest.mark.slow
def test_a_tf_keras_model_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path, 1, {"fixedShards": 2}, "train.py", "--package=tf_keras") as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "cuts variables of this tf_keras model into shards" in run["chief-0"].output()


def test_a_custom_loop_is_refused(tmp_path: Path) -> None:
    with cluster(tmp_path, 1, {"fixedShards": 2}, "custom.py") as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "strategyOptions.partitioner cuts variable" in run["chief-0"].output()
        assert "train with dtjob_trainer.fit" in run["chief-0"].output()
