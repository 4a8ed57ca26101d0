# SPDX-License-Identifier: Apache-2.0
"""Tests that `make test` leaves out, as they take long or need what others make."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/chaos", "tests/integrations", "tests/power_loss")


def test_tests_of_a_target_of_their_own_have_their_fixtures() -> None:
    """If a fixture is moved or renamed, their next run would be the first to fail. tests/browser is not among them: its
    plan needs playwright."""
    plan = ("-q", "--setup-plan", "-m", "slow or not slow", "-p", "no:cacheprovider")
    done = subprocess.run([sys.executable, "-m", "pytest", *plan, *FOLDERS], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
