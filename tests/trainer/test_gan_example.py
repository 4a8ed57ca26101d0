# SPDX-License-Identifier: Apache-2.0
"""examples/gan.yaml under `dtjob run`: a custom loop that is killed writes the same digits as one that is not."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.local_runs import LocalRun, assert_identical, manifest

STEPS = 700
PROGRAM = {"entrypoint": "examples/gan.py", "args": [f"--steps={STEPS}"]}
CHECKPOINTS = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 100}


@pytest.mark.slow  # test_custom_loop.py shows it of a smaller loop in every run
def test_killed_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    file = manifest("gan.yaml", tmp_path / "gan.yaml", 1, program=PROGRAM, checkpoint=CHECKPOINTS)
    results: list[dict[str, Any]] = []
    for killed in (False, True):
        with LocalRun(file, tmp_path / str(killed)) as run:
            if killed:
                statuses = run.wait_for_step(250, "worker-0")
                os.kill(statuses["worker-0"]["trainingPid"], signal.SIGKILL)
            code, result = run.end()
            assert code == 0, run.told
            assert len(result["recoverySeconds"]) == int(killed), run.told
            assert result["steps"] == STEPS
            results.append(result)
    assert results[0]["metrics"] == results[1]["metrics"]
    assert_identical(results[0]["model"], results[1]["model"])
