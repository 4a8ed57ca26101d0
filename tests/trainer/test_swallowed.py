# SPDX-License-Identifier: Apache-2.0
"""A program that goes on where a lost peer or a stop has cut its training off: nobody takes its 0 for a success."""

import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster

GROUP = {"chief": 1, "worker": 2}


@pytest.mark.parametrize(
    ("loop", "times", "leaves", "then"),
    [
        ("fit", 1, -1, "SystemExit"),
        # a second call is refused, and that is no better end
        ("fit", 2, -1, "SystemExit CutOffError"),
        pytest.param("fit", 2, 1, "SystemExit CutOffError", marks=pytest.mark.slow),
        pytest.param("train", 1, -1, "SystemExit", marks=pytest.mark.slow),
    ],
)
def test_a_program_that_swallows_a_lost_peer_does_not_succeed(
    tmp_path: Path, loop: str, times: int, leaves: int, then: str
) -> None:
    arguments = ("swallowing.py", loop, str(times), str(leaves))
    with Cluster(tmp_path, "MultiWorkerMirrored", GROUP, *arguments, checkpoint={"everySteps": 1000}) as run:
        run.start()
        for task in run.tasks:
            run[task].wait_for_step(3)
        run["worker-1"].kill()
        for task in ("chief-0", "worker-0"):
            assert run[task].exit_code() == 75, run[task].output()
            assert _swallowed(run, task) == then
        assert not (run.checkpoints / "DONE").exists()


@pytest.mark.parametrize("loop", ["fit", pytest.param("train", marks=pytest.mark.slow)])
def test_a_program_that_swallows_a_stop_does_not_succeed(tmp_path: Path, loop: str) -> None:
    arguments = ("swallowing.py", loop, "1", "-1")
    with Cluster(tmp_path, "MultiWorkerMirrored", GROUP, *arguments, checkpoint={"everySteps": 100_000}) as run:
        run.start()
        for task in run.tasks:
            run[task].wait_for_step(3)
        for task in ("chief-0", "worker-1"):
            run[task].say({"peerPreempted": "worker-0"})
        run["worker-0"].kill(signal.SIGTERM)
        for task, code in {"chief-0": 75, "worker-0": 143, "worker-1": 75}.items():
            assert run[task].exit_code() == code, run[task].output()
            assert _swallowed(run, task) == "SystemExit"
        assert run["chief-0"].status["checkpoint"]["step"] >= 3
        assert not (run.checkpoints / "DONE").exists()


def _swallowed(run: Cluster, task: str) -> str:
    lines = run[task].output().splitlines()
    return " ".join(line.split()[-1] for line in lines if line.startswith("swallowed"))
