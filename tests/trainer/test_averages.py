# SPDX-License-Identifier: Apache-2.0
"""Averages of weights (`use_ema`, SwapEMAWeights) over kills: weights and averages change places and lose no bit."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.trainer.support.harness import Cluster, saved_arrays
from tests.trainer.support.local_runs import assert_identical, weights

EPOCHS, STEPS_PER_EPOCH, HELD = 4, 16, 2
LAST = EPOCHS * STEPS_PER_EPOCH
TWO_TASKS = {"worker": 2}


def averaging(directory: Path, strategy: str, counts: dict[str, int], every: int) -> Cluster:
    return Cluster(
        directory,
        strategy,
        counts,
        "train.py",
        "--averages=epoch",
        f"--epochs={EPOCHS}",
        f"--wait-in-validation={directory / 'validated'}",
        f"--hold={HELD}",
        f"--gate={directory / 'gate'}",
        checkpoint={"everySteps": every, "maxToKeep": 9},
        options={"logicalCPUs": 2} if strategy in ("Mirrored", "CentralStorage") else {},
    )


def ended(run: Cluster) -> tuple[Any, ...]:
    """What the run came to, without the model."""
    chief = run[run.tasks[0]].status
    assert chief["resume"] == "exact"
    return saved_arrays(run.checkpoints, LAST), chief["metrics"]


@pytest.mark.parametrize(
    ("strategy", "counts", "every"),
    # killed where an epoch has just ended and weights and averages have changed places, and in the middle of one
    [
        (strategy, counts, every)
        for strategy, counts in (
            ("Default", {"chief": 1}),
            ("Mirrored", {"chief": 1}),
            ("CentralStorage", {"chief": 1}),
            ("MultiWorkerMirrored", TWO_TASKS),
        )
        for every in (12, 16)
    ],
)
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_stopped_in_validation_and_killed_ends_with_the_same_bits(
    tmp_path: Path, strategy: str, counts: dict[str, int], every: int
) -> None:
    ends, models = [], []
    for disturbed in (False, True):
        directory = tmp_path / str(disturbed)
        with averaging(directory, strategy, counts, every) as run:
            chief = run.tasks[0]
            if disturbed:
                run.start()
                for task in run.tasks:
                    run[task].wait_for_file(directory / f"validated.{run[task].process.pid}")
                run[chief].kill(signal.SIGTERM)
                assert [run[task].exit_code() for task in run.tasks] == [143, *[75] * (len(run.tasks) - 1)]
                run.start()
                run[chief].wait_for_checkpoint(HELD * STEPS_PER_EPOCH // every * every)
                run[chief].wait_for_step(HELD * STEPS_PER_EPOCH)
                for task in run.tasks:
                    run[task].kill()
                    assert run[task].exit_code() == -signal.SIGKILL
            for gate in ("validated", "gate"):
                (directory / gate).touch()
            run.run()
            assert run[chief].status["restoredStep"] == (HELD * STEPS_PER_EPOCH // every * every if disturbed else 0)
            ends.append(ended(run))
            models.append(run[chief].status["model"])
    assert ends[0] == ends[1]
    assert any("average" in name for name in ends[0][0])
    assert_identical(*models)


@pytest.mark.parametrize("seen", ["validation", pytest.param("epoch", marks=pytest.mark.slow)])
def test_the_evaluator_sees_the_weights_that_a_validation_sees(tmp_path: Path, seen: str) -> None:
    """Of the averages, which a checkpoint has beside the weights, or in their place where an epoch ends with them."""
    with Cluster(
        tmp_path,
        "Default",
        {"chief": 1, "evaluator": 1},
        "train.py",
        f"--averages={seen}",
        "--epochs=2",
        checkpoint={"everySteps": STEPS_PER_EPOCH, "maxToKeep": 9},
        env={"DTJOB_EVALUATION": json.dumps({"checkpoints": "Every", "best": {"metric": "loss", "mode": "Min"}})},
    ) as run:
        run.run("chief-0")
        run.run("evaluator-0")
        validated = {line["step"]: line["metrics"]["val_loss"] for line in run["chief-0"].lines if line.get("metrics")}
        found = [line["evaluation"] for line in run["evaluator-0"].lines if "evaluation" in line]
        evaluated = {each["step"]: each["metrics"]["loss"] for each in found}
        assert sorted(evaluated) == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]
        assert evaluated == pytest.approx(validated, rel=1e-5)
        best = json.loads((run.checkpoints / "best.json").read_text())
        assert best["step"] == 2 * STEPS_PER_EPOCH
        # the end of training makes the averages the weights, as the evaluator has seen them
        kept, trained = (weights(str(run.checkpoints / name)) for name in ("best.keras", "model.keras"))
        names = [name for name in kept if name.startswith("layers/")]
        assert len(names) >= 8, sorted(kept)
        for name in names:
            np.testing.assert_allclose(kept[name], trained[name], atol=1e-6, err_msg=name)
