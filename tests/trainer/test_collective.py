# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.collective: sums over tasks, and over the replicas of one."""

from pathlib import Path

from tests.trainer.support.harness import Cluster


def test_arrays_are_summed_over_the_tasks(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"chief": 1, "worker": 1}, "sums.py") as run:
        run.run()
        for task in run.tasks:
            assert "sums [[inf, 5.0], 1.0, [[11.0], [11.0]]] []" in run[task].output()


def test_the_sum_keeps_an_infinite_value_of_a_task_with_several_replicas(tmp_path: Path) -> None:
    """Those but the first add nothing, whatever their task has. (MultiWorkerMirrored has several on GPUs alone.)"""
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, "sums.py", options={"logicalCPUs": 2}) as run:
        run.run()
        assert "sums [[inf, 2.0], 0.0, [[1.0], [1.0]]] []" in run["chief-0"].output()
