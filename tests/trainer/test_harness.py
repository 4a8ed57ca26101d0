# SPDX-License-Identifier: Apache-2.0
"""What a failed test shows of the training processes."""

from pathlib import Path

import pytest

from tests.trainer.support import harness

HANGS = """
import os, pathlib, time
print(f"{os.environ['DTJOB_ROLE']} began", flush=True)

def waits_for_ever():
    pathlib.Path(os.environ["DTJOB_ROLE"]).touch()
    time.sleep(600)

waits_for_ever()
"""


def test_a_task_that_hangs_shows_the_output_and_the_stacks_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "hangs.py"
    program.write_text(HANGS)
    with harness.Cluster(tmp_path / "run", "Default", {"chief": 1, "evaluator": 1}, program) as run:
        run.start()
        for task in run.tasks:
            run[task].wait_for_file(run.directory / task.removesuffix("-0"))
        monkeypatch.setattr(harness, "WAIT_SECONDS", 0.1)
        with pytest.raises(AssertionError, match="chief-0 hangs") as failure:
            run["chief-0"].exit_code()
    of_chief, of_evaluator = str(failure.value).split("--- evaluator-0")
    for role, words in (("chief", of_chief), ("evaluator", of_evaluator)):
        assert f"{role} began" in words
        assert "in waits_for_ever" in words
