# SPDX-License-Identifier: Apache-2.0
"""The processes of a pod's container, read from /proc. So containerd may be away."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tools.cluster.cluster import container_id
from tools.cluster.rest import Object
from tools.node.kill_largest import memory


@dataclass(frozen=True)
class Process:
    """A process: its pid here, and whether it is its container's first."""

    pid: int
    first: bool

    def send(self, number: signal.Signals) -> None:
        """Send a signal. It is no error if the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def of_container(pod: Object, container: str) -> list[Process]:
    """The processes of a pod's container, the container's first process first. Empty if the container does not run."""
    identity = container_id(pod, container) if pod["status"].get("containerStatuses") else ""
    found = []
    for entry in Path("/proc").iterdir():
        if not identity or not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError, StopIteration):
            if identity in (entry / "cgroup").read_text():
                status = (entry / "status").read_text().splitlines()
                inner = next(line for line in status if line.startswith("NSpid:")).split()[-1]
                found.append(Process(int(entry.name), inner == "1"))
    return sorted(found, key=lambda one: not one.first)


def largest(processes: list[Process]) -> Process:
    """The process with the most memory of its own, which is the one that trains."""
    return max(processes, key=lambda one: memory(one.pid))
