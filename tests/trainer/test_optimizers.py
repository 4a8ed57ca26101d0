# SPDX-License-Identifier: Apache-2.0
"""Optimizers of Keras by themselves: where its own fit is wrong, and a loss scale that several workers adjust."""

import os
import subprocess
import sys

from tests.trainer.support.harness import PROGRAMS, ROOT


def test_momentum_is_kept_and_a_step_is_unscaled_by_its_own_scale() -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DTJOB_")}
    environ |= {"PYTHONPATH": str(ROOT / "trainer_image"), "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, str(PROGRAMS / "optimizers_by_hand.py")]
    result = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
