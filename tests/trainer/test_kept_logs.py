# SPDX-License-Identifier: Apache-2.0
"""The chief's log beside its checkpoints, of real supervisors and training processes, as in a pod."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.local.processes.addresses import free_ports

PROGRAM = """
print("a step")
raise KeyError("label")
"""


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_log_of_a_failed_attempt_stays_beside_the_checkpoints(tmp_path: Path, scheme: str) -> None:
    """gs:// goes the same way through tf.io.gfile; file:// is the scheme that is here without a network."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "kept").mkdir()
    task = {"DTJOB_ROLE": "chief", "DTJOB_INDEX": "0", "DTJOB_UID": "0123456789", "DTJOB_ATTEMPT": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "dtjob_trainer", "train.py"],
        env={
            **os.environ,
            **task,
            "DTJOB_INTEGRATION": "None",
            "DTJOB_STATUS_PORT": str(free_ports(1)[0]),
            "DTJOB_CHECKPOINT": json.dumps({"directory": f"{scheme}{tmp_path / 'kept'}"}),
        },
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 1
    kept = (tmp_path / "kept" / "logs" / "attempt-1.01234567.log").read_text()
    assert "a step" in ended.stdout
    assert "KeyError: 'label'" in ended.stderr
    assert "a step\n" in kept
    assert "KeyError: 'label'" in kept
    supervisors = [line for line in ended.stderr.splitlines() if "ending with 1" in line]
    assert len(supervisors) == 1
    assert scheme or supervisors[0] in kept
