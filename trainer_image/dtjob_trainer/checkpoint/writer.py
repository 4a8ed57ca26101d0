"""Writes checkpoints, whole or not at all, and removes the oldest."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.checkpoint import done
from dtjob_trainer.checkpoint.directory import (
    PARTS,
    STATE,
    check_directory,
    clear_half_written,
    name_finally,
    steps_in,
    write_state_file,
)
from dtjob_trainer.contract.task import Task
from dtjob_trainer.contract.times import timestamp
from dtjob_trainer.errors import CheckpointError

gfile = tf.io.gfile


def write(directory: str, step: int, tensors: Mapping[str, Any], state: bytes, keep: int) -> None:
    """Write checkpoint `step`, name it the latest, and remove all but the `keep` newest.

    Killed at any line, this leaves every older checkpoint whole, one of the same step included: either it is still
    there, or `clear_half_written` goes on from here. Files are renamed to their names when complete, the index last.
    """
    temporary = f"{directory}/ckpt-{step}_temp"
    if gfile.isdir(temporary):
        gfile.rmtree(temporary)
    gfile.makedirs(temporary)
    prefix = f"{temporary}/ckpt"
    with tf.device("CPU:0"):
        named = {**tensors, STATE: tf.constant(np.frombuffer(state, np.uint8))}
        names = list(named)
        tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.convert_to_tensor(named[name]) for name in names],
        )
    final = f"{directory}/ckpt-{step}"
    for part in PARTS:
        _flush(prefix + part)
    with contextlib.suppress(tf.errors.NotFoundError):
        gfile.remove(f"{final}.index")  # else it would stand beside another save's data for a moment
    name_finally(prefix, final)
    gfile.rmtree(temporary)
    steps = steps_in(directory)
    write_state_file(directory, steps[-keep:])
    for old in steps[:-keep]:
        for part in reversed(PARTS):
            gfile.remove(f"{directory}/ckpt-{old}{part}")


class Writer:
    """Writes checkpoints, in a thread of its own where asked to, one at a time."""

    def __init__(self, task: Task, report: Callable[..., None]) -> None:
        assert task.checkpoint is not None
        self.settings = task.checkpoint
        self._report = report
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.last_step: int | None = None
        check_directory(self.settings.directory)

    def prepare(self, uid: str) -> list[int]:
        """Make the directory, clear it of torn and foreign leftovers; the steps of its checkpoints."""
        gfile.makedirs(self.settings.directory)
        clear_half_written(self.settings.directory)
        done.remove_others_mark(self.settings.directory, uid)
        return steps_in(self.settings.directory)

    def write(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write checkpoint `step`. Raises what an earlier write in the background raised."""
        self.wait()
        self.last_step = step
        blob = json.dumps(state).encode()  # now, as training goes on and changes what `state` refers to
        self._report(writing=step)
        # daemon: Python's own wait at the end would have no limit, `let_end` has one
        self._thread = threading.Thread(target=self._write, args=(step, tensors, blob), name="checkpoint", daemon=True)
        self._thread.start()
        if not self.settings.asynchronous:
            self.wait()

    def wait(self) -> None:
        """Wait until the last write is on disk; raises what it raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise CheckpointError(f"checkpoint.directory {self.settings.directory}: {self._error}") from self._error

    def let_end(self) -> None:
        """Wait until a write in the background has ended, or may have hung; whether it went well is told by nobody."""
        if self._thread is not None:
            self._thread.join(self.settings.save_timeout_seconds)

    def _write(self, step: int, tensors: Mapping[str, Any], state: bytes) -> None:
        try:
            write(self.settings.directory, step, tensors, state, self.settings.keep)
            self._report(checkpoint={"step": step, "time": timestamp()}, writing=None)
        except BaseException as error:
            self._error = error
            self._report(writing=None)


def _flush(path: str) -> None:
    """Have the file on disk before its name says that it is whole; object stores do that by themselves."""
    if "://" in path:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
