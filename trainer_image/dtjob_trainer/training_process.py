"""One training process: started with its two pipes (docs/contract.md), spoken to, listened to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtjob_trainer import processes

LONGEST_LINE = 1 << 20
"""Bytes of a progress line after which it is thrown away: the supervisor must not grow with what a program writes."""


class TrainingProcess:
    """A started training process. Its end is told by the reaper, through `exited`."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], on_progress: Callable[[dict[str, Any]], None]
    ) -> None:
        """Start `command` in a session of its own; standard output and error are ours. Needs a running event loop."""
        self._on_progress, self._unfinished = on_progress, b""
        go_read, self._go = os.pipe()
        self._progress, progress_write = os.pipe()
        os.set_blocking(self._go, False)
        os.set_blocking(self._progress, False)
        supervisor = os.getpid()

        def before_exec() -> None:
            processes.die_with_parent(signal.SIGKILL)
            if os.getppid() != supervisor:  # it ended between fork and prctl
                os._exit(1)

        try:
            process = subprocess.Popen(
                list(command),
                env={**environ, "DTJOB_GO_FD": str(go_read), "DTJOB_PROGRESS_FD": str(progress_write)},
                pass_fds=(go_read, progress_write),
                start_new_session=True,
                preexec_fn=before_exec,
                stdin=subprocess.DEVNULL,
            )
        except BaseException:
            os.close(self._go)
            os.close(self._progress)
            raise
        finally:
            os.close(go_read)
            os.close(progress_write)
        self.pid = process.pid
        process.returncode = 0  # the reaper waits for it, not this object
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """Its return code, as in `subprocess`."""
        asyncio.get_running_loop().add_reader(self._progress, self._read)

    def go(self, generation: int) -> None:
        """Let it start TensorFlow."""
        self._write({"generation": generation})

    def tell_peer_preempted(self, task: str) -> None:
        """Tell it that `task` is about to leave."""
        self._write({"peerPreempted": task})

    def terminate(self) -> None:
        """SIGTERM to the training process itself; what it started is its own to end."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to it and all of its process group."""
        if not self.exited.done():
            processes.kill_group(self.pid)

    def close(self) -> None:
        """Read what it wrote last and close the pipes. Call it once, after the end of the process."""
        self._read()
        asyncio.get_running_loop().remove_reader(self._progress)
        os.close(self._progress)
        os.close(self._go)

    def _write(self, line: dict[str, Any]) -> None:
        # A process that is dying or never reads is no reason for the supervisor to fail.
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
