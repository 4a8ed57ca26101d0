# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.parent: no process outlives the one that started it."""

import subprocess
import sys
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[4] / "trainer_image"
ASKS = "import os, signal; from dtjob_trainer.contract.parent import die_with_parent\n"


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASKS + program],
        env={"PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_parent_that_is_gone_already_ends_the_process_at_once() -> None:
    result = run("die_with_parent(signal.SIGTERM, os.getppid() + 1); print('goes on')")
    assert (result.returncode, result.stdout) == (143, "")


def test_a_process_gets_the_signal_when_its_parent_ends() -> None:
    """The child would wait for ever, with the output open that we read to its end."""
    program = """
me, (read_end, write_end) = os.getpid(), os.pipe()
if os.fork() == 0:
    die_with_parent(signal.SIGKILL, me)
    os.write(write_end, b"x")
    signal.pause()
os.read(read_end, 1)
print("the parent ends")
"""
    result = run(program)
    assert (result.returncode, result.stdout) == (0, "the parent ends\n")
