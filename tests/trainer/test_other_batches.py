"""A restart whose program has another batch_size goes on in the epoch that ran, at the example where it was."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster


@pytest.mark.parametrize(
    ("before", "after", "steps", "rest"),
    [
        (16, 32, 26, ["epoch 1 rows 96", "epoch 2 rows 256", "epoch 3 rows 256"]),
        (32, 16, 20, ["epoch 2 rows 96", "epoch 3 rows 256"]),
    ],
)
def test_no_epoch_is_lost_and_none_is_told_of_twice(
    tmp_path: Path, before: int, after: int, steps: int, rest: list[str]
) -> None:
    """It is told to end in that step, and does after the next one: 176 rows into epoch 1, and 160 into epoch 2."""
    checkpoint = {"everySteps": 1000, "directory": str(tmp_path / "checkpoints")}
    for size, ends_after in ((before, steps), (after, 0)):
        program = "other_batches.py", str(size), str(ends_after)
        with Cluster(tmp_path / str(size), "Default", {"chief": 1}, *program, checkpoint=checkpoint) as run:
            run.start()
            assert run["chief-0"].exit_code() == (143 if ends_after else 0)
            said = run["chief-0"].output()
            if ends_after:
                assert run["chief-0"].status["checkpoint"]["step"] == steps + 1
    lines = [line for line in said.splitlines() if line.startswith(("epoch", "losses"))]
    assert lines == [*rest, "losses 4 of epochs [0, 1, 2, 3]"]
    assert f"batch_size was {before} where the checkpoint was written, and is {after} now" in said
