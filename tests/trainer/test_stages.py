# SPDX-License-Identifier: Apache-2.0
"""Programs that call `fit` several times: each call is a stage, with checkpoints of its own."""

import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, saved_arrays

FIRST, SECOND, HELD = 12, 12, 15
"""Steps of the first fit and of the second one, and the steps that are done where the second one is held."""


def said(run: Cluster, task: str) -> dict[str, str]:
    """What the program printed, by the first word of each line."""
    lines = (line.partition(" ") for line in run[task].output().splitlines())
    return {first: rest for first, _, rest in lines if first in ("first", "second", "evaluated")}


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ("Default", {"chief": 1}),
        pytest.param("MultiWorkerMirrored", {"worker": 2}, marks=pytest.mark.slow),
    ],
)
def test_a_killed_second_fit_goes_on_with_the_same_bits(tmp_path: Path, strategy: str, counts: dict[str, int]) -> None:
    """The first fit is not repeated: its end is loaded, and its History returned."""
    ends = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        gate = directory / "gate"
        with Cluster(
            directory, strategy, counts, "two_stages.py", f"--gate={gate}", checkpoint={"everySteps": 2}
        ) as run:
            run.start()
            chief = run[run.tasks[0]]
            if killed:
                chief.wait_until(lambda s: s.get("step") == HELD and s.get("stage") == 2, "the held epoch")
                chief.wait_for_checkpoint(HELD - 1)
                chief.kill()
                assert chief.exit_code() == -signal.SIGKILL
                for other in run.tasks[1:]:
                    assert run[other].exit_code() == 75
                run.start()
            gate.touch()
            run.expect_success()
            chief = run[run.tasks[0]]
            assert (chief.status["step"], chief.status["stage"]) == (FIRST + SECOND, 2)
            if killed:
                steps = [line["step"] for line in chief.lines if line.get("step") is not None]
                assert steps == sorted(steps)
                assert min(steps) >= HELD - 1
                assert "ended before: not repeated" in chief.output()
                assert [line["state"] for line in chief.lines if "state" in line].count("training") == 1
            words = said(run, run.tasks[0])
            assert "[0, 1, 2, 3]" in words["first"]
            assert "[4, 5, 6, 7]" in words["second"]
            ends.append((saved_arrays(run.checkpoints / "stage-2", SECOND), words))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("ends_in", ["epoch", pytest.param("call", marks=pytest.mark.slow)])
def test_a_program_that_leaves_out_a_fit_gets_no_other_ones_end(tmp_path: Path, ends_in: str) -> None:
    """Whether the call after it had begun before the restart or not."""
    arguments = ("skipped_stage.py", str(tmp_path / "tried"), ends_in)
    with Cluster(tmp_path, "Default", {"chief": 1}, *arguments, checkpoint={"everySteps": 2}) as run:
        run.start()
        assert run["chief-0"].exit_code() == 3, run["chief-0"].output()
        run.start()
        assert run["chief-0"].exit_code() == 1
        words = run["chief-0"].status["message"]
    assert "call 1 of fit or train has learning_rate 0.001, and not 0.01 as in the checkpoint of its end" in words


def test_an_evaluator_follows_from_stage_to_stage(tmp_path: Path) -> None:
    counts = {"chief": 1, "evaluator": 1}
    with Cluster(tmp_path, "Default", counts, "two_stages.py", checkpoint={"everySteps": 2}) as run:
        run.start("chief-0")
        run.expect_success("chief-0")
        run.start("evaluator-0")
        assert run["evaluator-0"].exit_code() == 0
        evaluated = [line["evaluation"]["step"] for line in run["evaluator-0"].lines if line.get("evaluation")]
        assert evaluated == [FIRST, FIRST + SECOND]
        assert "[0, 1, 2, 3]" in said(run, "evaluator-0")["first"]
