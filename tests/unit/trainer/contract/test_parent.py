# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.parent: no process outlives the one that started it."""

import subprocess
import sys
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[4] / "trainer_image"
ASKS = "import os, signal; from dtjob_trainer.contract.parent import die_with_parent\n"


def test_a_parent_that_is_gone_already_ends_the_process_at_once() -> None:
    program = ASKS + "die_with_parent(signal.SIGTERM, os.getppid() + 1); print('goes on')"
    environment = {"PYTHONPATH": str(PACKAGES)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout) == (143, "")
