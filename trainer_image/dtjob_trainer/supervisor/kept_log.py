# SPDX-License-Identifier: Apache-2.0
"""The log of the chief task's container, kept beside the checkpoints: it can be read when the pod is gone.

All that the processes of the container print passes through pipes of this process to the container's own output. A
thread writes the newest part of it to `logs/` in the checkpoint directory, now and then and at the end. No process of
the training waits for that write.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from dtjob_trainer.contract import log_line
from dtjob_trainer.contract.kept_logs import FOLDER, GATHER_SECONDS, GATHERED, MOST_ATTEMPTS, kept_name
from dtjob_trainer.contract.task import Task

EVERY_SECONDS = 30.0
"""How often a log that has grown is written."""
MOST_BYTES = 1 << 20
"""The newest bytes of an attempt that are kept."""
END_SECONDS = 1.0
"""At its end the container waits so long for what is still printed, and then for the last write."""
_OUTPUTS = (1, 2)
_PIECE = 1 << 16


def keep_log(task: Task) -> "KeptLog | None":
    """Keep the log of this container from now on. None if the task is not the chief of a job with checkpoints, or if
    `dtjob run` started it, which keeps all logs.

    Only training processes reach a bucket: GATHERED names the file that those that are started from now on copy.
    """
    checkpoint = task.checkpoint
    if checkpoint is None or not task.is_chief or task.parent is not None:
        return None
    if "://" in checkpoint.directory:
        gathered = os.memfd_create("log")
        os.environ[GATHERED] = f"/proc/{os.getpid()}/fd/{gathered}"
        return KeptLog(lambda text: _gather(gathered, text), lambda _: None, GATHER_SECONDS)
    target = Path(checkpoint.directory) / FOLDER / kept_name(task.attempt, task.uid)

    def warn(error: OSError) -> None:
        log_line.write(
            sys.stderr, f"this log cannot be kept in {target.parent}: {error}", level="warning", task=task.id
        )

    return KeptLog(lambda text: _write(target, text), warn)


class KeptLog:
    """Passes standard output and standard error on, and keeps the newest part of both."""

    def __init__(
        self, write: Callable[[bytes], None], warn: Callable[[OSError], None], every_seconds: float = EVERY_SECONDS
    ) -> None:
        """Begin. `write` replaces what was written before, and may take any time. `warn` hears of its first OSError."""
        self._write, self._warn, self._every = write, warn, every_seconds
        self._kept, self._changed = bytearray(), False
        self._lock, self._over = threading.Lock(), threading.Event()
        self._own = {number: os.dup(number) for number in _OUTPUTS}
        self._threads = [threading.Thread(target=self._pass_on, args=(number,), daemon=True) for number in _OUTPUTS]
        self._writer = threading.Thread(target=self._write_at_times, daemon=True)
        self._ends = [self._redirect(number) for number in _OUTPUTS]
        for thread in (*self._threads, self._writer):
            thread.start()

    @staticmethod
    def _redirect(number: int) -> int:
        """Let this output, also of processes that are started from now on, come to a pipe. Returns its other end."""
        end, into = os.pipe()
        os.dup2(into, number)
        os.close(into)
        return end

    def end(self) -> None:
        """Pass on and keep what is left, for some seconds at most."""
        deadline = time.monotonic() + END_SECONDS
        for number, own in self._own.items():
            os.dup2(own, number)
        for thread in self._threads:  # a process that is left behind may hold its pipe open
            thread.join(max(0.0, deadline - time.monotonic()))
        self._over.set()
        self._writer.join(END_SECONDS)

    def _pass_on(self, number: int) -> None:
        end, own, line = self._ends[number - 1], self._own[number], b""
        while data := os.read(end, _PIECE):
            with contextlib.suppress(OSError):  # nobody reads the log of this container
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(own, rest) :]
            line += data
            if len(line) < _PIECE:  # no line of the other output comes between
                data, line = line[: line.rfind(b"\n") + 1], line[line.rfind(b"\n") + 1 :]
            else:
                data, line = line, b""
            self._keep(data)
        self._keep(line)

    def _keep(self, data: bytes) -> None:
        if data:
            with self._lock:
                self._kept += data
                del self._kept[:-MOST_BYTES]
                self._changed = True

    def _write_at_times(self) -> None:
        warned, over = False, False
        while not over:
            over = self._over.wait(self._every)
            with self._lock:
                text, changed, self._changed = bytes(self._kept), self._changed, False
            if not changed:
                continue
            try:
                self._write(text)
            except OSError as error:
                if not warned:
                    self._warn(error)
                warned = True


def _gather(file: int, text: bytes) -> None:
    os.pwrite(file, text, 0)  # it only grows, up to MOST_BYTES


def _write(target: Path, text: bytes) -> None:
    """Replace this file, whole or not at all, and remove the oldest files beside it. Raises OSError."""
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    unfinished.write_bytes(text)
    unfinished.rename(target)
    kept = sorted(target.parent.glob("attempt-*.log"), key=lambda file: file.stat().st_mtime)
    for file in kept[:-MOST_ATTEMPTS]:
        file.unlink(missing_ok=True)
