# SPDX-License-Identifier: Apache-2.0
"""Saves that a kill tore and checkpoints that a disk damaged: training goes on from what is whole."""

import signal
from pathlib import Path

from tests.trainer.support.harness import Cluster, by_hand


def test_a_checkpoint_that_is_read_is_whole(tmp_path: Path) -> None:
    """Killed before each call that changes the directory; in one process, as none of it needs a cluster."""
    assert "all well" in by_hand("torn_saves.py", str(tmp_path / "checkpoints"), directory=tmp_path)


def test_a_damaged_checkpoint_is_renamed_and_the_earlier_one_is_restored(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    arguments = ("train.py", "--epochs=6", "--hold=3", f"--gate={gate}")
    with Cluster(tmp_path, "Default", {"chief": 1}, *arguments, checkpoint={"everySteps": 10, "maxToKeep": 2}) as run:
        run.start()
        run["chief-0"].wait_for_checkpoint(40)
        run["chief-0"].wait_for_step(48)
        run["chief-0"].kill()
        assert run["chief-0"].exit_code() == -signal.SIGKILL
        newest = run.checkpoints / "ckpt-40.data-00000-of-00001"
        newest.write_bytes(newest.read_bytes()[:1000])
        gate.touch()
        run.run()
        assert run["chief-0"].status["restoredStep"] == 30
        assert (run.checkpoints / "damaged-ckpt-40.index").exists()
        assert "kept as damaged-ckpt-40" in run["chief-0"].output()
        assert "saving" in [line.get("state") for line in run["chief-0"].lines]  # at the end of the run
