# SPDX-License-Identifier: Apache-2.0
"""Finds the processes of one measured run by a variable of their environment; adds up what they cost; ends them."""

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

MARK = "BENCHMARK_RUN"
"""The variable. Processes that were forked or adopted have it as well."""
_TICK = os.sysconf("SC_CLK_TCK")


def of_run(name: str) -> list[int]:
    """Ids of all that have `MARK=name` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"{MARK}={name}\0".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def cpu_seconds(pids: Iterable[int]) -> Counter[str]:
    """Processor seconds by the name that `ps` shows, of Python by its module; those of ended children included."""
    seconds: Counter[str] = Counter()
    for pid in pids:
        with contextlib.suppress(OSError):
            name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
            arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if name.startswith("python") and arguments[1:2] == ["-m"]:
                name = arguments[2]
            seconds[name] += sum(int(ticks) for ticks in rest.split()[11:15]) / _TICK
    return seconds


def kill(name: str) -> None:
    """End them all, and wait until they are gone."""
    while pids := of_run(name):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
