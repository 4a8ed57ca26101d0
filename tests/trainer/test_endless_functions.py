# SPDX-License-Identifier: Apache-2.0
"""`train` with a data function of which nobody knows how many examples it gives: it is passed over again and again."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

LAST = float(sum(range(48, 64)))
"""Of the last batch of 16 of a pass over 64."""


@pytest.mark.parametrize(
    ("strategy", "counts", "data"),
    [
        ("Default", {"chief": 1}, "whole"),
        pytest.param("MultiWorkerMirrored", {"worker": 2}, "whole", marks=pytest.mark.slow),
        ("MultiWorkerMirrored", {"worker": 2}, "share"),
    ],
)
def test_a_data_function_is_repeated_and_a_restart_goes_on_in_the_same_pass(
    tmp_path: Path, strategy: str, counts: dict[str, int], data: str
) -> None:
    """10 steps of 4 in a pass, and after a restart 10 more: the last is the last of the fifth pass."""
    for steps in (10, 20):
        directory, checkpoint = tmp_path / str(steps), {"everySteps": 7, "directory": str(tmp_path / "checkpoints")}
        program = "endless_functions.py", data, str(steps)
        with Cluster(directory, strategy, counts, *program, checkpoint=checkpoint) as run:
            run.run()
            chief = next(iter(run.members.values()))
            assert chief.status["step"] == steps
            assert (f"last {LAST}" in chief.output()) == (steps == 20)
