# SPDX-License-Identifier: Apache-2.0
"""Kills the process that has the most memory of those that a process has begun, itself included.

Of a container, that is what the kernel's out-of-memory killer picks. Run in the container's node:
`python kill_largest.py PID`. Standard library only.
"""

import os
import re
import signal
import sys
from collections.abc import Iterable
from pathlib import Path


def begun_by(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def largest(pids: Iterable[int]) -> int:
    """The one with the most memory of its own."""
    return max(pids, key=memory)


def memory(pid: int) -> int:
    """Kilobytes of memory of a process, without files' pages; 0 of one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^RssAnon:\s+(\d+)", status, re.M)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    os.kill(largest(begun_by(int(sys.argv[1]))), signal.SIGKILL)
