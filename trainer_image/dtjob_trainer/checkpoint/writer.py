# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints, whole or not at all, and removes older ones."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.checkpoint import done, object_store, packing, parts, retention
from dtjob_trainer.checkpoint.directory import (
    STATE,
    clear_half_written,
    files_of,
    flush,
    make_writable,
    name_finally,
    remove_checkpoint,
    steps_in,
    write_state_file,
)
from dtjob_trainer.checkpoint.owner import Owner
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.contract.task import Task
from dtjob_trainer.contract.times import timestamp
from dtjob_trainer.errors import CheckpointError, CheckpointInUseError
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.strategies.parameter_servers import devices_of

gfile = tf.io.gfile
RETRY_SECONDS = 1.0
"""After how long a write that failed is tried once more; a save before the end has not much time."""


def write(
    directory: str,
    step: int,
    tensors: Mapping[str, Any],
    state: bytes,
    max_to_keep: int,
    also_kept: Callable[[Sequence[int]], Set[int]] = lambda _: frozenset(),
    by_servers: bool = False,
) -> None:
    """Write checkpoint `step`, name it the latest, and remove all but the `max_to_keep` newest and those `also_kept`.

    `also_kept` is given the steps of all checkpoints, oldest first.

    Killed at any line, this leaves every older checkpoint whole, one of the same step included: either it is still
    there, or `clear_half_written` goes on from here. Files are renamed to their names when complete, the index last. In
    an object store they are written under these names, if there is no checkpoint of this step.

    - by_servers: have parameter servers write what they hold.
    """
    temporary = f"{directory}/ckpt-{step}_temp"
    if gfile.isdir(temporary):
        gfile.rmtree(temporary)
    gfile.makedirs(temporary)
    name = f"ckpt-{step}"
    at_once = object_store.holds(directory) and not files_of(directory, name)
    written = packing.as_tensors({**tensors, STATE: np.frombuffer(state, np.uint8)})
    final = f"{directory}/{name}" if at_once else ""
    parts.write(temporary, "ckpt", written, final=final, by_servers=by_servers)
    if not at_once:
        flush(temporary)
        remove_checkpoint(directory, name)  # else it would stand beside another save's data for a moment
        name_finally(f"{temporary}/ckpt", f"{directory}/{name}", files_of(temporary, "ckpt"))
    gfile.rmtree(temporary)
    steps = steps_in(directory)
    kept = {*steps[-max_to_keep:], *also_kept(steps)}
    write_state_file(directory, sorted(kept))
    for old in sorted(set(steps) - kept):
        remove_checkpoint(directory, f"ckpt-{old}")


class Writer:
    """Writes checkpoints, in a thread of its own where asked to, one at a time.

    A write that fails is tried once more soon, and told. Training goes on without that checkpoint, and fails only where
    the next one cannot be written either: storage that was away for a moment costs no more than a checkpoint.
    """

    def __init__(
        self,
        task: Task,
        settings: Checkpoint,
        report: Callable[..., None],
        log: Callable[..., None],
        owner: Owner | None = None,
    ) -> None:
        """`settings`: of the program's present stage. `owner`: the mark that an earlier stage has taken."""
        assert task.checkpoint is not None
        self.settings, self._root = settings, task.checkpoint.directory
        self._report, self._log, self._task, self._uid = report, log, task, task.uid
        self.owner = owner or Owner(task, report, log)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        """Why the last write came to nothing; None where it is on disk, or on its way."""
        self._step: int | None = None
        """What that was of."""
        self.servers: tuple[str, ...] = ()
        """The devices of parameter servers, if these read and write in the directory themselves."""
        object_store.check(self.settings.directory)

    def prepare(self) -> list[int]:
        """Make the directory this job's, clear it of torn and foreign leftovers; the steps of its checkpoints.

        Raises CheckpointError where another job writes there or it cannot be written to: before the first step, and not
        at the second save.
        """
        self.owner.wait()  # what looks torn may be another job's save
        clear_half_written(self.settings.directory)  # before anything is written, as that may be what fills the disk
        make_writable(self.settings.directory)
        self.owner.take()
        done.remove_others_mark(self._root, self._uid)
        if parts.is_shared(self.settings.directory, servers := devices_of(self._task)):
            self.servers = servers
        return steps_in(self.settings.directory)

    def write(self, step: int, tensors: Mapping[str, Any], state: Any) -> None:
        """Write checkpoint `step`. Raises CheckpointError where neither this one nor the one before can be written, or
        another job has taken the directory."""
        self.owner.check()
        failed_before = self.settle() is not None
        blob, large = packing.pack(state)  # now, as training goes on and changes what `state` refers to
        self._report(writing=step)
        self._step, self._error = step, None
        arguments = (step, {**tensors, **large}, blob, failed_before)
        # daemon: Python's own wait at the end would have no limit, `let_end` has one
        self._thread = threading.Thread(target=self._write, args=arguments, name="checkpoint", daemon=True)
        self._thread.start()
        if failed_before:
            self.wait()  # not in the background: training on for nothing may take long until the next save
        elif self.settings.write_mode == "Sync":
            self.settle()

    @property
    def is_writing(self) -> bool:
        """Whether a write in the background has not ended."""
        return self._thread is not None and self._thread.is_alive()

    def settle(self) -> int | None:
        """Wait until the last write has ended; the step that it could not write, None where all is on disk.

        Raises TensorFlow's error of a parameter server that was lost: no storage is at fault.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None and _is_of_lost_server(self._error):
            raise self._error
        return self._step if self._error is not None else None

    def wait(self) -> None:
        """Wait until the last write is on disk. Raises CheckpointError where it could not be written."""
        failed = self.settle()
        self.owner.check()
        if failed is not None:
            raise CheckpointError(f"checkpoint.storage {self.settings.directory}: {self._error}") from self._error

    def let_end(self) -> None:
        """Wait until a write in the background has ended, or may have hung."""
        if self._thread is not None:
            self._thread.join(self.settings.save_timeout_seconds)

    def _write(self, step: int, tensors: Mapping[str, Any], state: bytes, clear: bool) -> None:
        """`clear`: of what a failed write has left, which may be what fills the disk. A complete save among that gets
        its name before the next write begins: it may be the only one of this step."""
        directory, again = self.settings.directory, True
        kept, by_servers = partial(retention.kept, self._uid, self.settings), bool(self.servers)
        while True:
            try:
                self.owner.look()
                if clear:
                    clear_half_written(directory)
                write(directory, step, tensors, state, self.settings.max_to_keep, kept, by_servers)
            except BaseException as error:
                again = again and not (isinstance(error, CheckpointInUseError) or _is_of_lost_server(error))
                what_now = "it is tried once more" if again else "there will be none of this step"
                why = f"checkpoint.storage {directory}: the checkpoint could not be written, {what_now}: {error}"
                self._log(why, level="warning", step=step)
                if not again:
                    self._error = error
                    self._report(writing=None)
                    return
            else:
                self._report(checkpoint={"step": step, "time": timestamp()}, writing=None)
                return
            again, clear = False, True
            time.sleep(RETRY_SECONDS)


def _is_of_lost_server(error: BaseException) -> bool:
    """Whether a parameter server was lost that held variables, or wrote them itself."""
    return "/job:ps/" in str(error) and is_peer_loss(error, members=2)
