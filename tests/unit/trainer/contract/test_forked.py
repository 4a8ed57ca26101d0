# SPDX-License-Identifier: Apache-2.0
import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob_trainer.contract.forked import ROOM_VARIABLE, Request

SHOW = """
import os, pathlib, sys
from dtjob_trainer.contract import forked
forked.take_room()
assert forked.ROOM_VARIABLE not in os.environ
if os.fork() == 0:
    environ = {"DTJOB_Z": "last", "DTJOB_ROLE": "worker", "DTJOB_UID": "u", "OTHER": "1", "DTJOB_LONG": "." * 99}
    forked._room.show(["python", "-m", "a program"], environ)
    for name in ("cmdline", "environ"):
        print([item for item in pathlib.Path("/proc/self", name).read_text().split("\\0") if item], flush=True)
    os._exit(0)
os.wait()
print("." * 9 in pathlib.Path("/proc/self/cmdline").read_text())
"""


def test_a_request_is_read_as_it_was_written():
    request = Request("dtjob_trainer", ["a.py", "ä b"], {"X": "1"}, ["1", "DTJOB_GO_FD"], "/tmp")
    assert Request.from_bytes(request.to_bytes()) == request


@pytest.mark.parametrize("message", [b"", b"{}", b'{"module": "x", "unknown": 1}', b"\xff"])
def test_a_message_that_is_no_request_is_refused(message: bytes):
    with pytest.raises((ValueError, TypeError)):
        Request.from_bytes(message)


def test_a_forked_process_shows_what_it_has_room_for():
    root = Path(__file__).resolve().parents[4]
    environ = {"PYTHONPATH": str(root / "trainer_image"), "PATH": os.environ["PATH"], ROOM_VARIABLE: "." * 60}
    result = subprocess.run([sys.executable, "-c", SHOW, "." * 99], env=environ, capture_output=True, text=True)
    command, variables, parents = result.stdout.splitlines()
    assert command == "['python', '-m', 'a program']"
    shown = [item for item in ast.literal_eval(variables) if item.startswith("DTJOB_")]
    assert shown == ["DTJOB_UID=u", "DTJOB_ROLE=worker", "DTJOB_Z=last"]
    assert "OTHER=1" not in variables
    assert parents == "True", "the process that it was forked from shows its own"
