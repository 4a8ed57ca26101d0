"""The checkpoint directory: written whole or not at all, read by the chief, pruned, marked DONE (docs/contract.md)."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.contract.task import Task
from dtjob_trainer.contract.times import timestamp
from dtjob_trainer.errors import CheckpointError

gfile = tf.io.gfile
STATE = "state"
"""Name of the tensor that holds everything that is no variable: JSON as bytes (uint8)."""
DATA_SUFFIX = ".data-00000-of-00001"
DONE = "DONE"
TEMPORARY_MODEL = ".saving-"
"""Prefix of a model file that is not whole yet."""
DAMAGED = "damaged-"
"""Prefix of the files of a checkpoint that could not be read, which are kept for whoever wants to look into it."""
UNREADABLE = (tf.errors.DataLossError, tf.errors.OutOfRangeError)
"""What TensorFlow raises for a damaged checkpoint: a wrong checksum, a file that is cut off."""
GONE = (tf.errors.NotFoundError, *UNREADABLE)
"""What it raises for one that is removed while it is read."""


def _foreign(directory: str, step: int) -> CheckpointError:
    return CheckpointError(
        f"{directory}/ckpt-{step} was not written by dtjob; choose another checkpoint.directory, or move it away"
    )


def check_directory(directory: str) -> None:
    """Raise CheckpointError for a directory that TensorFlow cannot write to."""
    if directory.startswith("s3://"):
        raise CheckpointError(
            f"checkpoint.directory {directory!r}: TensorFlow's wheel has no s3 file system; "
            "mount the bucket as a volume and name its path, or use gs://"
        )


def steps_in(directory: str) -> list[int]:
    """The steps of all whole checkpoints in `directory`, oldest first; empty where it does not exist."""
    if not gfile.isdir(directory):
        return []
    names = set(gfile.listdir(directory))
    found = (re.fullmatch(r"ckpt-(\d+)\.index", name) for name in names)
    return sorted(int(m[1]) for m in found if m and f"ckpt-{m[1]}{DATA_SUFFIX}" in names)


def clear_half_written(directory: str) -> None:
    """End or remove what a killed process left of a save, so that nothing torn is ever read.

    Raises CheckpointError, and changes nothing, where there is a checkpoint in several parts, as we write none.
    """
    names = [entry.rstrip("/") for entry in gfile.listdir(directory)]
    for name in names:
        step = _step_of_part(name)
        if step is not None and not name.endswith((".index", DATA_SUFFIX)):
            raise _foreign(directory, step)
    for name in names:
        if re.fullmatch(r"ckpt-\d+_temp", name):
            final = f"{directory}/{name.removesuffix('_temp')}"
            if not gfile.exists(f"{final}.index") and gfile.exists(f"{directory}/{name}/ckpt.index"):
                _name_finally(f"{directory}/{name}/ckpt", final)  # TensorFlow writes the index last: it was all there
            gfile.rmtree(f"{directory}/{name}")
    whole = set(steps_in(directory))
    for entry in gfile.listdir(directory):
        name = entry.rstrip("/")
        if name.startswith(TEMPORARY_MODEL) or _step_of_part(name) not in whole | {None}:
            remove(f"{directory}/{name}")


def remove(path: str) -> None:
    """Remove a file, or a directory with all that is in it."""
    if gfile.isdir(path):
        gfile.rmtree(path)
    else:
        gfile.remove(path)


def set_aside(directory: str, step: int) -> None:
    """Rename checkpoint `step`, which cannot be read, so that nobody takes it for the newest."""
    for suffix in (".index", DATA_SUFFIX):
        gfile.rename(f"{directory}/ckpt-{step}{suffix}", f"{directory}/{DAMAGED}ckpt-{step}{suffix}", overwrite=True)
    if left := steps_in(directory):
        _write_state_file(directory, left)


def _step_of_part(name: str) -> int | None:
    """The step that a checkpoint's file belongs to, None for other files."""
    match = re.fullmatch(r"ckpt-(\d+)\.(index|data-.*)", name)
    return int(match[1]) if match else None


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
    for suffix in (DATA_SUFFIX, ".index"):
        _flush(prefix + suffix)
    if gfile.exists(f"{final}.index"):
        gfile.remove(f"{final}.index")  # else it would stand beside another save's data for a moment
    _name_finally(prefix, final)
    gfile.rmtree(temporary)
    steps = steps_in(directory)
    _write_state_file(directory, steps[-keep:])
    for old in steps[:-keep]:
        for suffix in (".index", DATA_SUFFIX):
            gfile.remove(f"{directory}/ckpt-{old}{suffix}")


def _name_finally(prefix: str, final: str) -> None:
    """Give the files of a complete save their names, those of them that have not got them yet."""
    for suffix in (DATA_SUFFIX, ".index"):
        if gfile.exists(prefix + suffix):
            gfile.rename(prefix + suffix, final + suffix, overwrite=True)


def read(directory: str, step: int) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays and the state of checkpoint `step`.

    Raises CheckpointError where it is not one of ours, one of UNREADABLE where it is damaged, and NotFoundError where
    it is gone. All is read by TensorFlow's operation: its reader object tells all of these by the same class of error.
    """
    prefix = f"{directory}/ckpt-{step}"
    try:
        state: dict[str, Any] = json.loads(_restore(prefix, {STATE: tf.uint8})[STATE].tobytes())
    except tf.errors.NotFoundError:
        if not tf.train.load_checkpoint(prefix).has_tensor(STATE):
            raise _foreign(directory, step) from None
        raise
    types = tf.train.load_checkpoint(prefix).get_variable_to_dtype_map()
    return _restore(prefix, {name: types[name] for name in sorted(types) if name != STATE}), state


def _restore(prefix: str, types: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The named tensors of a checkpoint, given their types."""
    if not types:
        return {}
    names = list(types)
    with tf.device("CPU:0"):
        found = tf.raw_ops.RestoreV2(
            prefix=prefix,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            dtypes=[types[name] for name in names],
        )
    return {name: np.asarray(tensor.numpy()) for name, tensor in zip(names, found, strict=True)}


def read_done(directory: str) -> dict[str, Any] | None:
    """The mark DONE of `directory`, None where there is none."""
    try:
        with gfile.GFile(f"{directory}/{DONE}") as file:
            mark: dict[str, Any] = json.loads(file.read())
            return mark
    except tf.errors.NotFoundError:
        return None


def mark_done(task: Task, status: Mapping[str, Any]) -> None:
    """Mark the run of `task`'s job done, with its last status. Called by the chief task after the program has ended."""
    assert task.checkpoint is not None
    gfile.makedirs(task.checkpoint.directory)
    told = {key: value for key, value in status.items() if value is not None}
    mark = {"uid": task.uid, "step": status.get("step"), "status": told}
    write_text(f"{task.checkpoint.directory}/{DONE}", json.dumps(mark, default=float))


def remove_others_mark(directory: str, uid: str) -> None:
    """Remove a mark DONE that another job left: this job trains on from its checkpoints."""
    mark = read_done(directory)
    if mark is not None and mark.get("uid") != uid:
        gfile.remove(f"{directory}/{DONE}")


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
        remove_others_mark(self.settings.directory, uid)
        return steps_in(self.settings.directory)

    def write(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write checkpoint `step`. Raises what an earlier write in the background raised."""
        self.wait()
        self.last_step = step
        blob = json.dumps(state).encode()  # now, as training goes on and changes what `state` refers to
        self._report(writing=step)
        self._thread = threading.Thread(target=self._write, args=(step, tensors, blob), name="checkpoint")
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


def _write_state_file(directory: str, steps: list[int]) -> None:
    """TensorFlow's own file `checkpoint`, so that tf.train.latest_checkpoint works on the directory."""
    lines = [f'model_checkpoint_path: "ckpt-{steps[-1]}"']
    lines += [f'all_model_checkpoint_paths: "ckpt-{step}"' for step in steps]
    write_text(f"{directory}/checkpoint", "\n".join(lines) + "\n")


def write_text(path: str, text: str) -> None:
    """Write a small file whole or not at all."""
    temporary = f"{path}.tmp"
    with gfile.GFile(temporary, "w") as file:
        file.write(text)
    gfile.rename(temporary, path, overwrite=True)


def _flush(path: str) -> None:
    """Have the file on disk before its name says that it is whole; object stores do that by themselves."""
    if "://" in path:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
