# SPDX-License-Identifier: Apache-2.0
"""Processes of a pod that outlived its supervisor: found by their environment, as a container's end would take them."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

MARKS = ("DTJOB_UID", "DTJOB_ROLE", "DTJOB_INDEX", "DTJOB_ATTEMPT")
"""Variables that together name one pod of one job; every process that descends from it has them."""

PROC = Path("/proc")
LOOK_AGAIN_SECONDS = 0.02


def find(marks: Mapping[str, str]) -> list[int]:
    """Ids of this user's processes with all of these variables; empty if there is no /proc. Zombies have none."""
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    found = []
    if not wanted or not PROC.is_dir():
        return []
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
                if wanted <= set((entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return found


async def kill(marks: Mapping[str, str], seconds: float = 5.0) -> list[int]:
    """SIGKILL all such processes and wait until they are gone; those that were still there after `seconds`."""
    if "DTJOB_UID" not in marks:
        return []  # without the job's uid the marks would fit other runs' processes
    deadline = asyncio.get_running_loop().time() + seconds
    while left := find(marks):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return left
