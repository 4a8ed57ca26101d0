# SPDX-License-Identifier: Apache-2.0
"""One training process: its start, its two pipes (contract.md) and its signals."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from dtjob_trainer.contract import pipes
from dtjob_trainer.contract.parent import die_with_parent
from dtjob_trainer.contract.template import DESCRIPTOR_VARIABLE, Template
from dtjob_trainer.supervisor import reaper

LONGEST_LINE = 1 << 20
"""Bytes. A longer line of a report is thrown away, so that a program cannot fill the supervisor's memory."""


class TrainingProcess:
    """A started training process. When it has ended, the reaper sets `exited`."""

    def __init__(self, on_progress: Callable[[dict[str, Any]], None]) -> None:
        """Call `start`."""
        self._on_progress, self._unfinished = on_progress, b""
        self.pid = 0
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The return code of the process, as in `subprocess`."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environ: Mapping[str, str],
        on_progress: Callable[[dict[str, Any]], None],
        template: Template | None = None,
    ) -> "TrainingProcess":
        """Start `command` in a session of its own, with our standard output and error.

        `template`: if it waits, fork the process from it. Only for commands that run `dtjob_trainer.run`.
        """
        process = cls(on_progress)

        async def execute(ends: dict[str, int]) -> int:
            return process._execute(command, environ, ends, template)

        if template is not None:
            await process._begin(lambda ends: template.spawn(command[3:], environ, ends))
        if not process.pid:  # with new pipes: a template that did not answer in time may have passed the first ones on
            await process._begin(execute)
        asyncio.get_running_loop().add_reader(process._progress, process._read)
        return process

    async def _begin(self, start: Callable[[dict[str, int]], Awaitable[int | None]]) -> None:
        """Make the two pipes and `start` a process with its ends. It returns the id, or None if it started none."""
        go_read, self._go = os.pipe()
        self._progress, progress_write = os.pipe()
        os.set_blocking(self._go, False)
        os.set_blocking(self._progress, False)
        try:
            self.pid = await start({pipes.GO: go_read, pipes.PROGRESS: progress_write}) or 0
        finally:
            os.close(go_read)
            os.close(progress_write)
            if not self.pid:
                os.close(self._go)
                os.close(self._progress)

    @staticmethod
    def _execute(
        command: Sequence[str], environ: Mapping[str, str], descriptors: dict[str, int], template: Template | None
    ) -> int:
        """Execute `command`. The first such process is asked to leave a template behind."""
        supervisor = os.getpid()
        leave = template.hand_over() if template else None
        if leave is not None:
            descriptors = {**descriptors, DESCRIPTOR_VARIABLE: leave}
        process = subprocess.Popen(
            list(command),
            env={**environ, **{variable: str(number) for variable, number in descriptors.items()}},
            pass_fds=tuple(descriptors.values()),
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGKILL, supervisor),
            stdin=subprocess.DEVNULL,
        )
        process.returncode = 0  # the reaper waits for the process, not this object
        if template and leave is not None:
            template.handed_over()
        return process.pid

    def go(self, generation: int) -> None:
        """Let the process start TensorFlow."""
        self._write({"generation": generation})

    def tell_peer_preempted(self, task: str) -> None:
        """Tell the process that `task` is about to leave."""
        self._write({"peerPreempted": task})

    def terminate(self) -> None:
        """Send SIGTERM to the training process only. It ends itself what it has started."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process group of the training process."""
        if not self.exited.done():
            reaper.kill_group(self.pid)

    def abort(self) -> None:
        """Send SIGABRT: the process writes the stacks of its threads (faulthandler) and ends, even if it is stopped."""
        if not self.exited.done():
            with contextlib.suppress(OSError, ValueError):
                hard = resource.prlimit(self.pid, resource.RLIMIT_CORE)[1]
                # 1 and not 0: with 0 the kernel still pipes core dumps to a handler (core(5))
                resource.prlimit(self.pid, resource.RLIMIT_CORE, (hard if 0 <= hard < 1 else 1, hard))
            for number in (signal.SIGABRT, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)

    def close(self) -> None:
        """Read the last reports and close the pipes. Call this once, after the end of the process."""
        self._read()
        asyncio.get_running_loop().remove_reader(self._progress)
        os.close(self._progress)
        os.close(self._go)

    def _write(self, line: dict[str, Any]) -> None:
        # A process that dies or never reads must not make the supervisor fail.
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            os.write(self._go, json.dumps(line).encode() + b"\n")

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._progress, 65536)
            except BlockingIOError:
                return
            if not data:
                asyncio.get_running_loop().remove_reader(self._progress)
                return
            *lines, self._unfinished = (self._unfinished + data).split(b"\n")
            if len(self._unfinished) > LONGEST_LINE:
                self._unfinished = b""
            for line in lines:
                with contextlib.suppress(ValueError):
                    value = json.loads(line)
                    if isinstance(value, dict):
                        self._on_progress(value)
