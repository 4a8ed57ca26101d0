# SPDX-License-Identifier: Apache-2.0
"""ParameterServer with tasks that are slow, away, or lost during a save: each step counts once."""

import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import Cluster, Member

DOZEN = 12
"""Steps that one file holds (counted_steps.py)."""
SERVERS = ["ps-0", "ps-1"]


def counted(folder: Path, dozens: int, held: Sequence[str], every: int, **checkpoint: Any) -> Cluster:
    """A run of so many dozens of steps, with a file for each of `held`."""
    for name in held:
        (folder / f"hold-{name}").touch()
    arguments = (f"--directory={folder}", f"--steps={dozens * DOZEN}")
    counts = {"chief": 1, "worker": 2, "ps": 2}
    checkpoint |= {"everySteps": every, "everySeconds": 0}
    return Cluster(folder, "ParameterServer", counts, "counted_steps.py", *arguments, checkpoint=checkpoint)


def wait_for_workers(chief: Member, folder: Path, dozen: int, workers: int) -> None:
    """Wait until so many workers wait in the first steps of a dozen."""
    for number in range(workers):
        chief.wait_for_file(folder / f"in-{dozen * DOZEN + number}")


@pytest.mark.parametrize("stopped", [0, pytest.param(150, marks=pytest.mark.slow)])
def test_workers_that_are_lost_late_or_stopped_double_no_step(tmp_path: Path, stopped: float) -> None:
    """One is killed within a step, which another one then does; it comes back late. Then it is stopped in a step."""
    with counted(tmp_path, 4, ("1", "2", "3"), every=4 * DOZEN) as run:
        run.start()
        chief, worker = run["chief-0"], run["worker-1"]
        wait_for_workers(chief, tmp_path, 1, 2)
        worker.kill()
        assert worker.exit_code() == -signal.SIGKILL
        (tmp_path / "hold-1").unlink()
        wait_for_workers(chief, tmp_path, 2, 1)  # without it
        run.start("worker-1")
        wait_for_workers(chief, tmp_path, 2, 2)
        run["worker-1"].kill(signal.SIGSTOP)
        (tmp_path / "hold-2").unlink()
        wait_for_workers(chief, tmp_path, 3, 1)  # all but its step are done
        time.sleep(stopped)  # no condition: TensorFlow and gRPC are to notice nothing
        run["worker-1"].kill(signal.SIGCONT)
        wait_for_workers(chief, tmp_path, 3, 2)
        (tmp_path / "hold-3").unlink()
        run.expect_success("chief-0")
        assert chief.status["checkpoint"]["step"] == 4 * DOZEN


def test_a_ps_that_is_lost_during_a_save_takes_training_back_to_the_checkpoint_before(tmp_path: Path) -> None:
    """The other ps has written its part of the save by then."""
    with counted(tmp_path, 4, ("save-24", "3"), every=DOZEN) as run:
        run.start()
        chief = run["chief-0"]
        chief.wait_for_file(tmp_path / "saving-24")
        chief.wait_for_file(run.checkpoints / "ckpt-24_temp" / "parts" / "1-2.index")
        run["ps-1"].kill()
        assert run["ps-1"].exit_code() == -signal.SIGKILL
        (tmp_path / "hold-save-24").unlink()
        (tmp_path / "hold-3").unlink()
        assert chief.exit_code() == 75
        run.start("ps-1", "chief-0")
        run.expect_success("chief-0")
        assert run["chief-0"].status["restoredStep"] == DOZEN
        assert f"tables written by {SERVERS}, read by {SERVERS}" in run["chief-0"].output()
        assert not list(run.checkpoints.glob("*_temp"))
        assert not list(run.checkpoints.glob(".dtjob*"))


def test_a_ps_that_is_back_at_once_ends_the_chief_once(tmp_path: Path) -> None:
    """A worker that has lost a server does not ask for it again for a second: the chief waits for that."""
    with counted(tmp_path, 10_000, (), every=DOZEN) as run:
        run.start()
        for _ in range(3):
            step = run["chief-0"].wait_for_checkpoint(1)["step"] or 0
            run["chief-0"].wait_for_step(step + 1)
            run["ps-1"].kill()
            assert run["ps-1"].exit_code() == -signal.SIGKILL
            assert run["chief-0"].exit_code() == 75
            run.start("ps-1", "chief-0")
        run["chief-0"].wait_for_step(run["chief-0"].wait_for_checkpoint(1)["checkpoint"]["step"] + DOZEN)


def test_tables_of_ps_without_the_directory_pass_through_the_chief(tmp_path: Path) -> None:
    """Each process has a memory of its own behind ram://."""
    with counted(tmp_path, 2, (), every=DOZEN, directory="ram://checkpoints") as run:
        run.start()
        run.expect_success("chief-0")
        assert run["chief-0"].status["checkpoint"]["step"] == 2 * DOZEN
        assert "tables written by ['chief-0'], read by []" in run["chief-0"].output()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_kills_of_ps_and_chief_at_random_moments_mix_no_two_steps(tmp_path: Path) -> None:
    chance, during_saves = random.Random(0), 0
    with counted(tmp_path, 800, (), every=DOZEN) as run:
        run.start()
        for _ in range(10):
            chief, before = run["chief-0"], len(run["chief-0"].lines)
            chief.wait_for_checkpoint(1)
            chief.wait_until(lambda _, c=chief, b=before: len(c.lines) > b, "new steps")
            time.sleep(chance.uniform(0.0, 1.0))  # no condition to wait for: any moment must do
            victim = chance.choice(("chief-0", *SERVERS))
            during_saves += chief.status.get("writing") is not None
            run[victim].kill()
            assert run[victim].exit_code() == -signal.SIGKILL
            if victim != "chief-0":
                assert chief.exit_code() == 75
                run.start(victim)
            run.start("chief-0")
        run.expect_success("chief-0")
    print(f"{during_saves} of 10 kills within a save")
    assert during_saves
