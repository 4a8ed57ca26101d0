# SPDX-License-Identifier: Apache-2.0
"""Removes all that a node made, from whatever state it is in: after a stop, and after a crash.

    python leftovers.py DIRECTORY       # waits until its input ends, that is until its parent is gone; then removes

The node's processes, mounts, interfaces, routes and iptables rules live in namespaces of their own, and the kernel ends
those with the namespace's first process. What outlives them is one end of a network link, cgroups and the directory.

Standard library only: it runs as a process of its own.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LINK = "dtjob0"
"""The host's end of the link to the node."""
CGROUP = "dtjob-node"
"""The node's cgroup, in every hierarchy."""
INIT = "init.pid"
"""In the node's directory: its first process, and when that started."""


def started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty where there is none (or only its dead remains)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def hierarchies() -> list[Path]:
    """The roots of this machine's cgroup hierarchies: one (v2), or one for each controller."""
    top = Path("/sys/fs/cgroup")
    return [top] if (top / "cgroup.controllers").exists() else [path for path in top.iterdir() if os.path.ismount(path)]


def cgroups() -> list[Path]:
    """The node's cgroups that are there."""
    return [path for top in hierarchies() if (path := top / CGROUP).exists()]


def link_exists() -> bool:
    """Whether the host's end of the link is there."""
    return Path("/sys/class/net", LINK).exists()


def remove(directory: Path) -> None:
    """Kill what still runs, then remove link, cgroups and directory; waits until each is gone."""
    while (pid := _init(directory)) is not None:  # with it the kernel kills all that runs in its namespaces
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    if link_exists():
        subprocess.run(["ip", "link", "delete", LINK], capture_output=True)  # the kernel may be at it already
    while found := cgroups():
        for top in found:
            _remove_cgroup(top)
        time.sleep(0.02)
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(0.02)


def _init(directory: Path) -> int | None:
    """The node's first process where it still runs."""
    try:
        pid, when = (directory / INIT).read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if started(int(pid)) == when else None


def _remove_cgroup(top: Path) -> None:
    for path, _, _ in os.walk(top, topdown=False):
        try:
            for pid in Path(path, "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)  # only the node's processes are in here
            os.rmdir(path)  # noqa: PTH106 - Path.rmdir is the same
        except OSError:  # a process is not quite dead yet: the caller tries again
            continue


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.read()
    remove(Path(sys.argv[1]))
