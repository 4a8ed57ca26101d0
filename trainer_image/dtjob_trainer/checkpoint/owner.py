# SPDX-License-Identifier: Apache-2.0
"""The mark OWNER in a checkpoint directory: which job writes there now (contract.md).

The chief task writes the mark before it changes anything else in the directory, and renews its heartbeat. Whether
another job's mark is alive is told by a heartbeat that changes while one looks. No clocks are compared: those of two
nodes may differ.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from dtjob_trainer.checkpoint.directory import read_object, write_text
from dtjob_trainer.contract.task import Task
from dtjob_trainer.contract.times import timestamp
from dtjob_trainer.errors import CheckpointInUseError

gfile = tf.io.gfile
OWNER = "OWNER"
HEARTBEAT_SECONDS = 10.0
"""How often the mark is renewed."""
SILENT_SECONDS = 60.0
"""An owner whose heartbeat has not changed for so long is dead. An NFS client may show an old file for up to 60 s."""
POLL_SECONDS = 1.0
"""How often a task that waits for the directory looks at the mark."""
RELEASE_SECONDS = 5.0
"""How long the end of a process waits until the mark is removed: storage may hang."""

Mark = Mapping[str, Any]


@dataclass(frozen=True)
class Wait:
    """What is known of another job's mark that may be alive."""

    since: float
    """When the mark was first seen."""
    heartbeat: Any
    changed: float
    """When this heartbeat was first seen."""
    alive: bool = False
    """Whether the heartbeat has changed since the mark was first seen."""


@dataclass(frozen=True)
class Take:
    """The directory can be taken. `dead`: the mark of an owner that has ended without removing it."""

    dead: Mark | None = None


@dataclass(frozen=True)
class Refuse:
    """Another job is alive and keeps the directory."""

    mark: Mark


def decide(mark: Mark | None, uid: str, before: Wait | None, now: float, patience: float) -> Take | Refuse | Wait:
    """What the job `uid` does about `mark` (None: there is none). `before`: what it knew at its last look.

    - patience: seconds after which it waits no longer for an owner that is alive. The owner may be about to end.
    """
    if not is_others(mark, uid):
        return Take()
    assert mark is not None
    heartbeat = (mark["uid"], mark.get("heartbeat"))
    if before is None:
        return Wait(now, heartbeat, now)
    if heartbeat != before.heartbeat:
        return Refuse(mark) if now - before.since >= patience else Wait(before.since, heartbeat, now, alive=True)
    return Take(mark) if now - before.changed >= SILENT_SECONDS else before


def is_others(mark: Mark | None, uid: str) -> bool:
    """Whether `mark` is the mark of another job than `uid`. A mark that says nothing is nobody's."""
    return mark is not None and mark.get("uid", uid) != uid


def others_mark(directory: str, uid: str) -> Mark | None:
    """The mark of another job than `uid` in `directory`. None if there is none."""
    mark = read(directory)
    return mark if is_others(mark, uid) else None


def read(directory: str) -> Mark | None:
    """The mark in `directory`. None if there is none. Raises TensorFlow's errors of storage that cannot be read."""
    while True:
        try:
            return read_object(f"{directory}/{OWNER}")
        except tf.errors.AbortedError:  # on NFS: it was renewed while it was read (ESTALE)
            time.sleep(POLL_SECONDS)


class Owner:
    """The mark of one job in its checkpoint directory. For the chief task."""

    def __init__(self, task: Task, report: Callable[..., None], log: Callable[..., None]) -> None:
        assert task.checkpoint is not None
        self._task, self._directory = task, task.checkpoint.directory
        self._report, self._log = report, log
        self._other: Mark | None = None
        """The mark of the job that has taken the directory from this one."""
        self._thread: threading.Thread | None = None
        self._released = threading.Event()

    def wait(self) -> None:
        """Return when no other job owns the directory.

        Raises CheckpointInUseError if another one keeps it, or has taken it from this job.
        """
        self.check()
        patience = max(SILENT_SECONDS, self._task.grace_seconds)
        decided = decide(mark := read(self._directory), self._task.uid, None, time.monotonic(), patience)
        if not isinstance(decided, Wait):
            return
        why = f"{self._in_use_by(mark)}; waiting until it ends or its mark {OWNER} is {SILENT_SECONDS:.0f} s old"
        self._log(why, level="warning")
        self._report(message=why)
        while isinstance(decided, Wait):
            time.sleep(POLL_SECONDS)
            mark = read(self._directory)
            decided = decide(mark, self._task.uid, decided, time.monotonic(), patience)
        if isinstance(decided, Refuse):
            raise CheckpointInUseError(f"{self._in_use_by(decided.mark)}; {self._mend}")
        self._report(message=None)
        if decided.dead is not None:
            silent = f"its mark {OWNER} has not changed for {SILENT_SECONDS:.0f} s"
            self._log(f"the directory is taken over from job {name_of(decided.dead)}: {silent}", level="warning")

    def take(self) -> None:
        """Write the mark, and renew it from now on; once. The directory must be there."""
        if self._thread is not None:
            return
        self._write()
        self._thread = threading.Thread(target=self._renew, name="owner", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """See whether the mark is still this job's. Raises CheckpointInUseError if it is another's."""
        mark = read(self._directory)
        if is_others(mark, self._task.uid):
            self._other = mark
        self.check()

    def check(self) -> None:
        """Raise CheckpointInUseError if another job is known to have taken the directory. Reads nothing."""
        if self._other is not None:
            began = "both began at the same time, or this one was silent for a while"
            raise CheckpointInUseError(f"{self._in_use_by(self._other)}: {began}; {self._mend}")

    def release(self) -> None:
        """Remove the mark, so that another job may go on at once. Does nothing if it was not taken."""
        self._released.set()
        if self._thread is not None:
            self._thread.join(RELEASE_SECONDS)

    def _renew(self) -> None:
        """Renew the mark until it is released or another job's. Storage that is away is told by saves."""
        while not self._released.wait(HEARTBEAT_SECONDS):
            try:
                self.look()
                self._write()
            except CheckpointInUseError:
                return
            except (tf.errors.OpError, OSError):
                continue
        try:
            self.look()
            gfile.remove(f"{self._directory}/{OWNER}")
        except (CheckpointInUseError, tf.errors.OpError, OSError):
            return

    def _write(self) -> None:
        task = self._task
        mark = {"uid": task.uid, "namespace": task.namespace, "name": task.name, "heartbeat": timestamp()}
        temporary = f"{self._directory}/{OWNER}-{task.uid}.tmp"  # two jobs may write at once
        write_text(f"{self._directory}/{OWNER}", json.dumps(mark), temporary=temporary)

    def _in_use_by(self, mark: Mark | None) -> str:
        assert mark is not None
        return f"checkpoint.storage {self._directory} is in use by job {name_of(mark)}"

    @property
    def _mend(self) -> str:
        if self._task.parent is not None:
            return "end the other run, or name another --checkpoint"
        field = "uri" if "://" in self._directory else "subPath or volume"
        return f"write another checkpoint.storage.{field} in one of the two jobs"


def name_of(mark: Mark) -> str:
    """The job of `mark`, in words."""
    return f"{mark.get('namespace', '')}/{mark.get('name', '')} (uid {mark['uid']})"
