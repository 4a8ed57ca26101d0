# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the chief in the middle of saves of 200 MB, again and again. Slow: `make chaos`.

DTJOB_CHAOS_KILLS says how often (100), DTJOB_CHAOS_SEED which moments.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer.support.harness import WAIT_SECONDS, Cluster, Member

KILLS = int(os.environ.get("DTJOB_CHAOS_KILLS", "100"))
SEED = int(os.environ.get("DTJOB_CHAOS_SEED", "0"))
EVERY = 5
"""Steps between saves: fewer than a save lasts, so that one is always under way."""
SECONDS_A_KILL = 60


def wait_for(reached: Callable[[], bool], chief: Member, what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not reached():
        assert time.monotonic() < deadline, f"never came to {what}: {chief.output()}"
        assert chief.process.poll() is None, chief.output()
        time.sleep(0.001)


def saved_here(chief: Member) -> int:
    """How many checkpoints this process has finished: those it reports with their time."""
    return sum("time" in (line.get("checkpoint") or {}) for line in chief.lines)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_A_KILL * (KILLS + 1))
def test_kills_during_saves_tear_nothing_and_lose_two_intervals_at_most(tmp_path: Path) -> None:
    moments = random.Random(SEED)
    starts, last_step = tmp_path / "starts", tmp_path / "step"
    during_saves, worst = 0, 0
    with Cluster(
        tmp_path,
        "Default",
        {"chief": 1},
        "counting.py",
        f"--directory={tmp_path}",
        checkpoint={"everySteps": EVERY, "maxToKeep": 2},
    ) as run:
        trained = 0
        for kill in range(KILLS + 1):
            run.start()
            chief = run["chief-0"]
            wait_for(lambda n=kill: starts.exists() and starts.read_text().count("\n") > n, chief, "its first step")
            step, lowest, highest = map(int, starts.read_text().splitlines()[kill].split())
            assert step == lowest == highest, f"torn: step {step}, weights from {lowest} to {highest}"
            assert "cannot be read" not in chief.output()
            assert step >= trained - 2 * EVERY, f"kill {kill}: {trained} steps were done, {step} are left"
            worst = max(worst, trained - step)
            if kill == KILLS:
                break
            # one save whole, so that each start has one of its own to lose; then a moment within the next
            wait_for(lambda c=chief: saved_here(c) > 0, chief, "its first save")
            wait_for(lambda: any(run.checkpoints.glob("ckpt-*_temp")), chief, "a save")
            time.sleep(moments.uniform(0.0, 0.5))
            chief.kill()
            assert chief.exit_code() == -signal.SIGKILL
            trained = int(last_step.read_text())
            during_saves += any(run.checkpoints.glob("ckpt-*_temp"))
    print(f"{KILLS} kills, {during_saves} within a save; {worst} steps lost at worst, saves every {EVERY}")
    assert during_saves > KILLS // 4
