# SPDX-License-Identifier: Apache-2.0
"""The kept log of a task in a bucket. Its supervisor gathers the log, but only a training process reaches a bucket.

A thread copies the log now and then, and the end of the training process waits some seconds for the last copy. What is
printed later than the last copy is missing if the process is killed and not started again in its container.
"""

import contextlib
import fnmatch
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from dtjob_trainer.contract import kept_logs
from dtjob_trainer.contract.task import Task

gfile = tf.io.gfile
EVERY_SECONDS = 60.0
"""How often a log that has grown is copied."""
END_SECONDS = 5.0
"""The end of a process waits so long for the last copy."""


class BucketLog:
    """Copies what the supervisor has gathered."""

    def __init__(
        self, gathered: Path, task: Task, warn: Callable[[str], None], every_seconds: float = EVERY_SECONDS
    ) -> None:
        """Begin. `warn` hears of the first copy that fails."""
        assert task.checkpoint is not None
        self._gathered, self._folder = gathered, f"{task.checkpoint.directory}/{kept_logs.FOLDER}"
        self._name, self._pattern, self._over = kept_logs.kept_name(task), kept_logs.pattern(task), threading.Event()

        def warn_of(error: Exception) -> None:
            warn(f"this log cannot be kept in {self._folder}: {error}")

        at_times = (every_seconds, self._over, self._text, self._copy, warn_of)
        self._thread = threading.Thread(target=kept_logs.write_at_times, args=at_times, name="kept-log", daemon=True)
        self._thread.start()

    @classmethod
    def begin(cls, task: Task | None, warn: Callable[[str], None]) -> "BucketLog | None":
        """Copy the log from now on. None if the supervisor gathers none for this process to copy."""
        gathered = os.environ.get(kept_logs.GATHERED)
        return cls(Path(gathered), task, warn) if gathered and task is not None and task.checkpoint else None

    def end(self) -> None:
        """Copy what is left, for some seconds at most."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # perhaps nobody reads any more
                stream.flush()
        time.sleep(2 * kept_logs.GATHER_SECONDS)
        self._over.set()
        self._thread.join(END_SECONDS)

    def _text(self) -> bytes:
        """What is gathered; nothing while TensorFlow cannot write to the bucket. The program may register what can."""
        scheme = self._folder.partition("://")[0]
        return self._gathered.read_bytes() if scheme in gfile.get_registered_schemes() else b""

    def _copy(self, text: bytes) -> None:
        gfile.makedirs(self._folder)
        with gfile.GFile(f"{self._folder}/{self._name}", "wb") as file:
            file.write(text)
        kept = [f"{self._folder}/{name}" for name in fnmatch.filter(gfile.listdir(self._folder), self._pattern)]
        for path in sorted(kept, key=lambda path: gfile.stat(path).mtime_nsec)[: -kept_logs.MOST_ATTEMPTS]:
            gfile.remove(path)
