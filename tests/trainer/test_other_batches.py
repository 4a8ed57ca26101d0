# SPDX-License-Identifier: Apache-2.0
"""A restart whose program has another batch_size goes on in the epoch that ran, at the example where it was."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster


@pytest.mark.parametrize(
    ("before", "after", "steps", "rest"),
    [
        (16, 32, 27, ["epoch 1 rows 96", "epoch 2 rows 256", "epoch 3 rows 256"]),
        (32, 16, 21, ["epoch 2 rows 96", "epoch 3 rows 256"]),
    ],
)
def test_no_epoch_is_lost_and_none_is_reported_twice(
    tmp_path: Path, before: int, after: int, steps: int, rest: list[str]
) -> None:
    """It is told to end in that step, and does after it: 176 rows into epoch 1, and 160 into epoch 2."""
    checkpoint = {"everySteps": 1000, "directory": str(tmp_path / "checkpoints")}
    for size, ends_after in ((before, steps), (after, 0)):
        program = "other_batches.py", str(size), str(ends_after)
        with Cluster(tmp_path / str(size), "Default", {"chief": 1}, *program, checkpoint=checkpoint) as run:
            run.start()
            assert run["chief-0"].exit_code() == (143 if ends_after else 0)
            said = run["chief-0"].output()
            if ends_after:
                assert run["chief-0"].status["checkpoint"]["step"] == steps
    lines = [line for line in said.splitlines() if line.startswith(("epoch", "losses"))]
    assert lines == [*rest, "losses 4 of epochs [0, 1, 2, 3]"]
    assert f"batch_size was {before} where the checkpoint was written, and is {after} now" in said


def ended(directory: Path, name: str, program: str, *arguments: int) -> tuple[str, int]:
    """What a process of the program says until its end, and the step of its last checkpoint. Others of the directory go
    on where it was."""
    checkpoint = {"everySteps": 1000, "directory": str(directory / "checkpoints")}
    given = program, *map(str, arguments)
    with Cluster(directory / name, "Default", {"chief": 1}, *given, checkpoint=checkpoint) as run:
        run.start()
        assert run["chief-0"].exit_code() in (0, 143), run["chief-0"].output()
        return run["chief-0"].output(), run["chief-0"].status["checkpoint"]["step"]


def test_a_step_of_the_models_own_has_logs_of_an_epoch_that_has_no_step_left(tmp_path: Path) -> None:
    """More steps of the first epoch are done than it has now: its metrics are those of the checkpoint."""
    _, saved = ended(tmp_path, "first", "shorter_epochs.py", 8, 6)
    said, last = ended(tmp_path, "second", "shorter_epochs.py", 4, 0)
    (line,) = [line for line in said.splitlines() if line.startswith("losses")]
    assert saved == 6
    assert last == saved + 8
    assert line == f"losses {[(1 + saved) / 2, saved + 2.5, saved + 6.5]}"


@pytest.mark.parametrize(("before", "after"), [(16, 32), (32, 16)])
def test_a_custom_loop_goes_on_with_the_rows_that_its_pass_has_left(tmp_path: Path, before: int, after: int) -> None:
    a_pass = 256 // before
    first, saved = ended(tmp_path, "first", "train_in_batches.py", before, 1000, a_pass + a_pass // 2 - 1)
    assert a_pass < saved < 2 * a_pass
    left = -(-(2 * a_pass - saved) * before // after)
    said, _ = ended(tmp_path, "second", "train_in_batches.py", after, saved + left, 0)
    assert rows(first, a_pass, saved) | rows(said, saved, saved + left) == set(range(256))
    assert f"batch_size was {before} where the checkpoint was written, and is {after} now" in said


def rows(said: str, after: int, until: int) -> set[int]:
    """The rows of the steps after `after`, up to `until`."""
    lines = [line.split()[1:] for line in said.splitlines() if line.startswith("step ") and " rows " in line]
    return {int(row) for step, _, *found in lines if after < int(step) <= until for row in found}
