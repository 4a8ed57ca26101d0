# SPDX-License-Identifier: Apache-2.0
"""A child process that another process forked for us: ours since its parent ended (see launcher.py)."""

import asyncio
import contextlib
import os
import signal


class Adopted:
    """Has what asyncio's and subprocess's processes have and is used here: `pid`, `returncode`, signals, `wait`."""

    def __init__(self, pid: int) -> None:
        """`pid` is a child of this process that nobody else waits for. Raises OSError where the kernel has no pidfd."""
        self.pid = pid
        self.returncode: int | None = None
        """As in subprocess; None until `poll` or `wait` has seen the end."""
        self._descriptor = os.pidfd_open(pid)
        self._awaited = False

    def fileno(self) -> int:
        """A descriptor that can be read once the process has ended."""
        return self._descriptor

    def poll(self) -> int | None:
        """The return code, None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody waited for all children
                pid, status = self.pid, 255 << 8
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
                if not self._awaited:  # closed under whoever waits, it would never tell them
                    os.close(self._descriptor)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it, where it still runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    async def wait(self) -> int:
        """Wait for its end in the running event loop; the return code. One waiter at a time."""
        while self.poll() is None:
            await self._end()
        assert self.returncode is not None
        return self.returncode

    async def _end(self) -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        self._awaited = True
        loop.add_reader(self._descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._descriptor)
            self._awaited = False
            if self.returncode is not None:
                os.close(self._descriptor)
