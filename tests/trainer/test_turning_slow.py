# SPDX-License-Identifier: Apache-2.0
"""SIGTERM after fast steps have turned slow: the tasks save within a grace that the planned steps would exceed."""

from pathlib import Path

from tests.trainer.support.harness import Cluster


def test_tasks_save_within_a_short_grace_if_steps_have_turned_slow(tmp_path: Path) -> None:
    """The planned steps, 50 or more, take 25 seconds."""
    saves = {"everySeconds": 0, "everySteps": 10**6}
    with Cluster(
        tmp_path, "MultiWorkerMirrored", {"worker": 2}, "turning_slow.py", "0.5", checkpoint=saves, grace=20
    ) as run:
        run.start()
        assert [run[task].exit_code() for task in run.tasks] == [75, 143]
        assert run["worker-0"].status["checkpoint"] is not None, run["worker-0"].output()
