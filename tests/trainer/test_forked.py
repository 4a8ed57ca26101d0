# SPDX-License-Identifier: Apache-2.0
"""A process that was forked from a launcher and one that was executed cannot tell the difference."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.trainer.support import templates
from tests.trainer.support.harness import PROGRAMS, ROOT, WAIT_SECONDS

PROGRAM = [str(PROGRAMS / "surroundings.py"), "one", "two words"]


def test_a_forked_process_has_the_environment_of_an_executed_process(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "trainer_image"), "PYTHONUNBUFFERED": "1", "DTJOB_OWN": "x y"}
    with (tmp_path / "forked").open("wb") as output:
        process = templates.fork(PROGRAM, environ, {}, output.fileno(), tmp_path)
        assert process is not None
        assert process.wait(WAIT_SECONDS) == 0
    with (tmp_path / "executed").open("wb") as output:
        command = [sys.executable, "-m", "dtjob_trainer.run", *PROGRAM]
        assert templates.execute(command, environ, {}, output.fileno(), tmp_path).wait(WAIT_SECONDS) == 0
    forked, executed = said(tmp_path / "forked"), said(tmp_path / "executed")
    for key in forked.keys() | executed.keys():
        assert forked[key] == executed[key], key
    assert len(executed["imported"]) == 5, "nothing is left to be imported by dt.fit, dt.train and dt.save"
    assert executed["frozen"], "what was imported is gone through by no look for garbage"
    assert executed["looks for garbage"]


def said(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text().splitlines()[-1])
    return found
