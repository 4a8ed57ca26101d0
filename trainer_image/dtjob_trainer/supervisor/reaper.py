# SPDX-License-Identifier: Apache-2.0
"""The processes below this one: adopts orphans, reaps and kills them."""

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Adopt descendants that lose their parent, as PID 1 does. So none of them outlives this process unseen."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """Ids of this process's children, with dead ones that are not reaped yet."""
    found: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in (thread / "children").read_text().split()]
    return found


def kill_group(group: int) -> None:
    """Send SIGKILL to a process group, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by SIGSTOP or by a tracer."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False


def oom_kills(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """How many processes of this container the kernel has killed for want of memory. 0 if the kernel does not say."""
    for file in ("memory.events", "memory/memory.oom_control"):  # version 2 of control groups, and version 1
        with contextlib.suppress(OSError):
            counts = dict(line.split() for line in (cgroup / file).read_text().splitlines())
            return int(counts.get("oom_kill", 0))
    return 0


class Reaper:
    """Reaps every child and adopted orphan of this process on SIGCHLD.

    `on_exit(pid, returncode)` is called for each. If a process in `leaders` ends, its process group is killed too. That
    happens while the leader is still a zombie, so its number cannot belong to another group.
    """

    def __init__(self, on_exit: Callable[[int, int], None]) -> None:
        self._on_exit = on_exit
        self.leaders: set[int] = set()
        self._changed = asyncio.Event()
        self._spared: frozenset[int] = frozenset()
        self._held = False

    def start(self) -> None:
        """Reap from now on, in the running event loop. Children that already exist are reaped but never killed."""
        self._spared = frozenset(children())  # an image's entry point may have started them before it executed us
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)
        self.reap()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts, reap none: the id of a child that is being started is not known yet. Reap at its end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.reap()

    def reap(self) -> None:
        """Reap all dead children, unless they are held."""
        while not self._held:
            try:
                dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if dead is None:
                break
            if dead.si_pid in self.leaders:
                self.leaders.remove(dead.si_pid)
                kill_group(dead.si_pid)
            pid, status = os.waitpid(dead.si_pid, 0)
            self._on_exit(pid, os.waitstatus_to_exitcode(status))
        self._changed.set()

    async def kill_all(self, seconds: float, spare: int | None = None) -> list[int]:
        """Send SIGKILL to every child but `spare`, and to orphans that appear. Wait until all are reaped.

        Returns the ids of those that still exist after `seconds`: they cannot be killed.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            self.reap()
            left = [pid for pid in children() if pid not in self._spared and pid != spare]
            remaining = deadline - asyncio.get_running_loop().time()
            if not left or remaining <= 0:
                return left
            for pid in left:
                if pid in self.leaders:
                    kill_group(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._changed.clear()
            # No SIGCHLD announces an orphan of a child that just died, so look again soon.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(remaining, 0.05))
