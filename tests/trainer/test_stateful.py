# SPDX-License-Identifier: Apache-2.0
"""Stateful recurrent layers: a restart has their states, and several replicas are refused in one sentence.

Callbacks of the program see restored weights, and what they change in variables is done once.
"""

import re
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, saved_arrays

LAST, HELD = 16, 8


@pytest.mark.parametrize("package", ["keras", pytest.param("tf_keras", marks=pytest.mark.slow)])
def test_killed_and_resumed_run_ends_with_the_same_bits(tmp_path: Path, package: str) -> None:
    ends = []
    for killed in (False, True):
        directory = tmp_path / str(killed)
        gate = directory / "gate"
        program = ("stateful.py", f"--package={package}", f"--gate={gate}")
        with Cluster(directory, "Default", {"chief": 1}, *program, checkpoint={"everySteps": 3}) as run:
            run.start()
            chief = run["chief-0"]
            chief.wait_for_checkpoint(HELD // 3 * 3)
            if killed:
                chief.kill()
                assert chief.exit_code() == -signal.SIGKILL
                run.start()
            gate.touch()
            run.expect_success()
            assert run["chief-0"].status["resume"] == "exact", run["chief-0"].output()
            if killed:
                for method in ("set_model", "on_train_begin", "on_epoch_begin"):
                    seen = re.findall(rf"^{method} sees (\d+)$", run["chief-0"].output(), re.MULTILINE)
                    assert seen[0] == str(HELD // 3 * 3), f"{method} saw weights that are not restored"
            ends.append(saved_arrays(run.checkpoints, LAST))
    assert ends[0] == ends[1]


def test_several_replicas_are_refused(tmp_path: Path) -> None:
    """tf_keras refuses such layers under any strategy by itself."""
    with Cluster(
        tmp_path, "Mirrored", {"chief": 1}, "stateful.py", f"--gate={tmp_path}", options={"logicalCPUs": 2}
    ) as run:
        run.start()
        chief = run["chief-0"]
        assert chief.exit_code() == 1
        assert "is stateful: its states belong to the rows of one whole batch" in chief.status["message"]
        assert "train it under Default or OneDevice" in chief.status["message"]
