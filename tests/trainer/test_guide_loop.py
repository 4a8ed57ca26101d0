# SPDX-License-Identifier: Apache-2.0
"""A plain program with TensorFlow's own loop, as its guides write it, under the strategy that the runner has made."""

import json
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

TWO = {"logicalCPUs": 2}


@pytest.mark.parametrize(
    ("strategy", "counts", "options", "size"),
    [
        pytest.param("OneDevice", {"chief": 1}, {}, "1 replicas of 1 workers", marks=pytest.mark.slow),
        pytest.param("Mirrored", {"chief": 1}, TWO, "2 replicas of 1 workers", marks=pytest.mark.slow),
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}, "2 replicas of 2 workers"),
        pytest.param("MultiWorkerMirrored", {"worker": 3}, {}, "3 replicas of 3 workers", marks=pytest.mark.slow),
    ],
)
def test_the_custom_loop_of_the_guides_trains_under_the_jobs_strategy(
    tmp_path: Path, strategy: str, counts: dict[str, int], options: dict[str, int], size: str
) -> None:
    with Cluster(tmp_path, strategy, counts, "guide_loop.py", options=options, checkpoint={"everySteps": 10}) as run:
        run.run()
        for task in run.tasks:
            assert f"all well with {size}" in run[task].output()
        assert json.loads((run.checkpoints / "DONE").read_text())["uid"] == "uid-1"
