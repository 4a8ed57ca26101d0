# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.collective: sums over tasks."""

from pathlib import Path

from tests.trainer.support.harness import Cluster


def test_arrays_are_summed_over_the_tasks(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"chief": 1, "worker": 1}, "sums.py") as run:
        run.run()
        for task in run.tasks:
            assert "sums [[inf, 5.0], 1.0, [[11.0], [11.0]]] []" in run[task].output()
