# SPDX-License-Identifier: Apache-2.0
"""checkpoint.everyEpochs: which epochs are saved, and that a run goes on exactly from the end of one."""

import signal
from pathlib import Path

from tests.trainer.support.harness import Cluster, saved_arrays

STRATEGY = "MultiWorkerMirrored"
EPOCHS, STEPS_PER_EPOCH = 4, 16
LAST = EPOCHS * STEPS_PER_EPOCH
HOLD = 2
"""The epoch (from 0) at whose begin a killed run waits."""


def saved_steps(run: Cluster) -> list[int]:
    """The steps of all checkpoints."""
    return sorted(int(path.stem.removeprefix("ckpt-")) for path in run.checkpoints.glob("ckpt-*.index"))


def test_a_group_killed_after_an_epoch_goes_on_from_its_end_with_the_same_bits(tmp_path: Path) -> None:
    """The undisturbed group saves every second epoch. In the other the chief's clock decides for all tasks."""
    ends = []
    by_two = {"everyEpochs": 2, "everySeconds": 0, "maxToKeep": EPOCHS}
    by_default = {"everyEpochs": None, "everySeconds": 0, "maxToKeep": EPOCHS, "writeMode": "Sync"}
    for program, checkpoint in (("train.py", by_two), ("epochs_by_default.py", by_default)):
        killed = program != "train.py"
        gate = tmp_path / f"{program}.gate"
        arguments = (program, "--callbacks", f"--epochs={EPOCHS}", f"--hold={HOLD}", f"--gate={gate}")
        with Cluster(tmp_path / program, STRATEGY, {"worker": 2}, *arguments, checkpoint=checkpoint) as run:
            run.start()
            if killed:
                for task in run.tasks:
                    run[task].wait_for_step(HOLD * STEPS_PER_EPOCH)
                run["worker-0"].wait_for_checkpoint(HOLD * STEPS_PER_EPOCH)
                run["worker-1"].kill()
            gate.touch()
            if killed:
                assert {run[task].exit_code() for task in run.tasks} == {-signal.SIGKILL, 75}
                run.start()
            run.expect_success()
            status = run["worker-0"].status
            assert (status["restoredStep"], status["resume"]) == (killed * HOLD * STEPS_PER_EPOCH, "exact")
            epochs = range(1, EPOCHS + 1) if killed else range(2, EPOCHS + 1, 2)
            assert saved_steps(run) == [epoch * STEPS_PER_EPOCH for epoch in epochs]
            ends.append((saved_arrays(run.checkpoints, LAST), (run.directory / "log.csv").read_text()))
    assert ends[0] == ends[1]
