# SPDX-License-Identifier: Apache-2.0
"""Which process of a container is killed: of real processes."""

import os
import subprocess
import sys

from tools.node.kill_largest import begun_by, largest, memory

CHILD = "import sys; held = bytearray(64 << 20); print('ready', flush=True); sys.stdin.read()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}], stdin=sys.stdin)"


def test_the_largest_process_is_found_and_not_its_parent():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        found = begun_by(parent.pid)
        assert len(found) == 2
        assert found[0] == parent.pid
        assert largest(found) == found[1]
        assert memory(found[1]) > 64 << 10
        assert parent.stdin is not None
        parent.stdin.close()
    assert memory(found[1]) == 0
    assert os.getpid() in begun_by(os.getpid())
