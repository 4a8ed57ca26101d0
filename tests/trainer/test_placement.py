# SPDX-License-Identifier: Apache-2.0
"""Rules of placements: each against one device, of made-up rows. dtjob_trainer.placement."""

import json
import os
import subprocess
import sys

import pytest

from tests.trainer.support.harness import PROGRAMS, ROOT

TOLERANCE = 1e-5


@pytest.mark.timeout(600)
def test_each_rule_gives_what_one_device_has_of_value_and_gradients() -> None:
    """Also where one of two replicas has no row."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "trainer_image"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, str(PROGRAMS / "placement_rules.py")]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.split("found ", 1)[1])
    wrong = {
        name: differences
        for name, differences in found.items()
        if any(isinstance(each, str) or each > TOLERANCE for each in differences)
    }
    assert not wrong
    assert len(found) > 200
