"""Model.fit's arguments in runs that are killed: the same bits, the same History, and what Keras prints."""

import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, saved_arrays

EPOCHS, FIRST, STEPS_PER_EPOCH, EVERY = 6, 2, 12, 5
HELD_EPOCH = 4
LAST, HELD = (EPOCHS - FIRST) * STEPS_PER_EPOCH, (HELD_EPOCH - FIRST) * STEPS_PER_EPOCH
TWO = {"logicalCPUs": 2}


@pytest.mark.parametrize(
    ("package", "strategy", "counts", "options"),
    [
        ("keras", "MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("tf_keras", "MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}),
                ("keras", "Default", {"chief": 1}, {}),
                ("keras", "Mirrored", {"chief": 1}, TWO),
                ("keras", "CentralStorage", {"chief": 1}, TWO),
            )
        ),
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
        with Cluster(directory, strategy, counts, *program, checkpoint={"everySteps": EVERY}, options=options) as run:
            run.start()
            chief = run["chief-0"]
            if killed:
                chief.wait_for_checkpoint(HELD // EVERY * EVERY)
                chief.wait_for_step(HELD)
                assert chief.status["epoch"] == HELD_EPOCH
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
