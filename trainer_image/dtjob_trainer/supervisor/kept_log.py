# SPDX-License-Identifier: Apache-2.0
"""The logs of a job's containers, kept beside the checkpoints: they can be read when the pods are gone.

All that the processes of a container print passes through pipes of this process to the container's own output. A thread
of the chief task and of the evaluator writes the newest part of it to `logs/` in the checkpoint directory, now and then
and at the end. Other tasks send their last lines to the chief task (tails.py), which writes them into its own file.
Each line begins with its pod, as in `worker-1.0 | text`. No process of the training waits for that.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dtjob_trainer.contract import kept_logs, log_line
from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous import tails
from dtjob_trainer.rendezvous.tails import Tails

EVERY_SECONDS = 30.0
"""How often a log that has grown is written."""
MOST_BYTES = 1 << 20
"""The newest bytes of an attempt that are kept, without those of other tasks."""
END_SECONDS = 1.0
"""At its end the container waits so long for what is still printed, and then for the last write."""
_OUTPUTS = (1, 2)
_PIECE = 1 << 16


def keep_log(task: Task) -> "KeptLog | None":
    """Keep the log of this container from now on.

    Returns None if the job has no checkpoints, or if the task has nobody to send its log to. It also returns None under
    `dtjob run`, which keeps all logs itself.

    Only training processes reach a bucket. GATHERED tells those that are started from now on which file to copy there.
    """
    checkpoint, members = task.checkpoint, len(task.members)
    if checkpoint is None or task.parent is not None:
        return None
    keep = partial(KeptLog, f"{task.id}.{task.attempt}", Tails(task.uid, members))
    if not (task.is_chief or task.is_evaluator):
        if not task.in_cluster or task.rendezvous_port is None:
            return None
        return keep(partial(tails.send, task), lambda _: None, tails.every_seconds(members), tails.tail_bytes(members))
    if "://" in checkpoint.directory:
        gathered = os.memfd_create("log")
        os.environ[kept_logs.GATHERED] = f"/proc/{os.getpid()}/fd/{gathered}"
        return keep(partial(_gather, gathered), lambda _: None, kept_logs.GATHER_SECONDS)
    target = Path(checkpoint.directory) / kept_logs.FOLDER / kept_logs.kept_name(task)

    def warn(error: Exception) -> None:
        log_line.write(
            sys.stderr, f"this log cannot be kept in {target.parent}: {error}", level="warning", task=task.id
        )

    return keep(partial(_write, target, kept_logs.pattern(task)), warn, EVERY_SECONDS)


class KeptLog:
    """Passes standard output and standard error on, and keeps the newest lines of both."""

    def __init__(
        self,
        pod: str,
        others: Tails,
        write: Callable[[bytes], None],
        warn: Callable[[Exception], None],
        every_seconds: float,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Begin. `pod`: what each line begins with. `others`: what other tasks send, which follows those lines. `write`
        and `warn` are those of `write_at_times`."""
        self._begin, self._most, self._others = f"{pod} | ".encode(), most_bytes, others
        self._kept = bytearray()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._own = {number: os.dup(number) for number in _OUTPUTS}
        self._threads = [threading.Thread(target=self._pass_on, args=(number,), daemon=True) for number in _OUTPUTS]
        at_times = (every_seconds, self._over, self._text, write, warn)
        self._writer = threading.Thread(target=kept_logs.write_at_times, args=at_times, daemon=True)
        self._ends = [self._redirect(number) for number in _OUTPUTS]
        for thread in (*self._threads, self._writer):
            thread.start()

    def take(self, body: bytes) -> None:
        """Take the last lines of another task, which `tails.send` sent. Raises ValueError if they are not such."""
        with self._lock:
            self._others.take(body)

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
            whole = line.rfind(b"\n") + 1  # no line of the other output comes between
            if not whole and len(line) >= _PIECE:
                whole = len(line)
            self._keep(line[:whole])
            line = line[whole:]
        self._keep(line)

    def _keep(self, data: bytes) -> None:
        if data:
            data = data.removesuffix(b"\n")[len(self._begin) + 1 - self._most :]  # the end of a line that is too long
            with self._lock:
                self._kept += self._begin + data.replace(b"\n", b"\n" + self._begin) + b"\n"
                if (over := len(self._kept) - self._most) > 0:  # up to the end of the line in which that is
                    del self._kept[: self._kept.find(b"\n", over - 1) + 1]

    def _text(self) -> bytes:
        with self._lock:
            return bytes(self._kept) + self._others.text()


def _gather(file: int, text: bytes) -> None:
    os.pwrite(file, text, 0)
    os.ftruncate(file, len(text))


def _write(target: Path, attempts: str, text: bytes) -> None:
    """Replace this file, whole or not at all, and remove the oldest files of its task. Raises OSError."""
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    with unfinished.open("wb") as output:
        output.write(text)
        output.flush()
        os.fsync(output.fileno())  # a power loss would otherwise leave an empty file in place of the one before
    unfinished.rename(target)
    kept = sorted(target.parent.glob(attempts), key=lambda file: file.stat().st_mtime)
    for file in kept[: -kept_logs.MOST_ATTEMPTS]:
        file.unlink(missing_ok=True)
