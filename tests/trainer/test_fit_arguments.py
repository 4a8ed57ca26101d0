# SPDX-License-Identifier: Apache-2.0
"""Model.fit's arguments in runs that are killed: the same bits, the same History, and what Keras prints."""

import contextlib
import os
import pty
import re
import signal
import tty
from pathlib import Path

import pytest

from tests.trainer.support.harness import PROGRAMS, WAIT_SECONDS, Cluster, begun_by_hand, saved_arrays

EPOCHS, FIRST, STEPS_PER_EPOCH, EVERY = 6, 2, 12, 5
HELD_EPOCH = 4
LAST, HELD = (EPOCHS - FIRST) * STEPS_PER_EPOCH, (HELD_EPOCH - FIRST) * STEPS_PER_EPOCH
TWO = {"logicalCPUs": 2}


@pytest.mark.slow  # test_epoch_saves.py, test_stages.py and test_stateful.py compare bits in every run
@pytest.mark.parametrize(
    ("package", "strategy", "counts", "options"),
    [
        ("keras", "MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}),
        ("tf_keras", "MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}),
        ("keras", "Default", {"chief": 1}, {}),
        ("keras", "Mirrored", {"chief": 1}, TWO),
        ("keras", "CentralStorage", {"chief": 1}, TWO),
    ],
)
@pytest.mark.timeout(900)
def test_killed_and_resumed_run_ends_with_the_same_bits(
    tmp_path: Path, package: str, strategy: str, counts: dict[str, int], options: dict[str, int]
) -> None:
    """Of epochs 2 to 5, with a split of the arrays and a validation after some of them."""
    ends = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        gate = directory / "gate"
        program = ("train.py", f"--package={package}", "--split", f"--hold={HELD_EPOCH}", f"--gate={gate}")
        program = (*program, "--chief-holds")  # the others are to wait where they notice that it is gone
        with Cluster(directory, strategy, counts, *program, checkpoint={"everySteps": EVERY}, options=options) as run:
            run.start()
            chief = run["chief-0"]
            if killed:
                chief.wait_for_checkpoint(HELD // EVERY * EVERY)
                # the step is reported before the validation, and the epoch after it
                chief.wait_until(lambda s: (s.get("step"), s.get("epoch")) == (HELD, HELD_EPOCH), "the held epoch")
                chief.kill()
                assert chief.exit_code() == -signal.SIGKILL
                for task in run.tasks[1:]:
                    assert run[task].exit_code() == 75
                run.start()
            gate.touch()
            run.expect_success()
            chief = run["chief-0"]
            assert (chief.status["step"], chief.status["epoch"], chief.status["resume"]) == (LAST, EPOCHS, "exact")
            lines = chief.output().splitlines()
            (history,) = (line for line in lines if line.startswith("history "))
            printed = [line for line in lines if line.startswith("Epoch ")]
            assert printed == [f"Epoch {number}/{EPOCHS}" for number in range(HELD_EPOCH if killed else 3, EPOCHS + 1)]
            assert any(line.startswith(f"{STEPS_PER_EPOCH}/{STEPS_PER_EPOCH} - ") for line in lines)
            for task in run.tasks[1:]:
                assert "Epoch " not in run[task].output()
            ends.append((saved_arrays(run.checkpoints, LAST), chief.status["metrics"], history))
    assert ends[0] == ends[1]


def test_a_bar_moves_in_a_terminal(tmp_path: Path) -> None:
    """Elsewhere each of its changes would be a line of a log: test_fit_table.py sees one for each epoch."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    process = begun_by_hand([str(PROGRAMS / "by_hand.py")], theirs, tmp_path)
    os.close(theirs)
    told = b""
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while part := os.read(ours, 65536):
            told += part
    os.close(ours)
    assert process.wait(WAIT_SECONDS) == 0, told.decode()
    text = re.sub(r"\x1b\[\d+m", "", told.decode())
    for number in (1, 2):
        epoch = text.split(f"Epoch {number}/2")[1]
        assert "1/4" in epoch
        assert re.search(r"4/4 ━+ \d+s .*loss: ", epoch)
    assert 'message="epoch' not in text
