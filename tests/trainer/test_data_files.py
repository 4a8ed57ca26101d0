# SPDX-License-Identifier: Apache-2.0
"""Data is sharded before it is decoded: the tasks together decode, and count, every example once an epoch."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

N, EPOCHS = 57, 3


def noted(directory: Path, epoch: object) -> dict[str, list[int]]:
    """Task to the numbers that it decoded."""
    files = sorted(directory.glob(f"*/epoch-{epoch}"))
    return {file.parent.name: [int(line) for line in file.read_text().split()] for file in files}


@pytest.mark.slow
@pytest.mark.parametrize(("by", "workers"), [("file", 1), ("file", 2), ("file", 3), ("data", 3), ("file", 4)])
def test_every_example_is_decoded_by_one_task(tmp_path: Path, by: str, workers: int) -> None:
    notes = tmp_path / "notes"
    arguments = (f"--by={by}", f"--notes={notes}")
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": workers}, "data_files.py", *arguments) as run:
        run.run()
    for epoch in range(EPOCHS):
        decoded = noted(notes, epoch)
        assert len(decoded) == workers
        stand_ins = workers - 1  # of the last batch's shares all but one are empty
        seen = Counter(number for numbers in decoded.values() for number in numbers)
        assert set(seen) == set(range(N))
        assert seen.total() == N + stand_ins
        if by == "file":
            for numbers in decoded.values():  # in runs, as they lie in their file
                jumps = sum(b != a + 1 for a, b in pairwise(numbers))
                assert jumps <= 5


@pytest.mark.slow
def test_a_cache_is_filled_in_the_first_epoch(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with Cluster(tmp_path, "Default", {"chief": 1}, "data_files.py", "--by=cached", f"--notes={notes}") as run:
        run.run()
    assert sorted(noted(notes, "any")["chief-0"]) == list(range(N))
