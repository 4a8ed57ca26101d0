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

from dtjob_trainer.progress import timestamp
from dtjob_trainer.task import Task

gfile = tf.io.gfile
STATE = "state"
"""Name of the tensor that holds everything that is no variable: JSON as bytes (uint8)."""
DATA_SUFFIX = ".data-00000-of-00001"
DONE = "DONE"
TEMPORARY_MODEL = ".saving-"
"""Prefix of a model file that is not whole yet."""
UNREADABLE = (tf.errors.DataLossError, tf.errors.OutOfRangeError, RuntimeError, ValueError)
"""What TensorFlow raises for a damaged checkpoint."""
GONE = (tf.errors.NotFoundError, *UNREADABLE)
"""What it raises for one that is removed while it is read."""


class CheckpointError(Exception):
    """The checkpoint directory cannot be used as asked; the message names it and the mend."""


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


def remove_half_written(directory: str) -> None:
    """Remove what a killed process left of a save, so that nothing torn is ever read.

    Raises CheckpointError, and removes nothing, where there is a checkpoint in several parts, as we write none.
    """
    whole = set(steps_in(directory))
    names = [entry.rstrip("/") for entry in gfile.listdir(directory)]
    for name in names:
        step = _step_of_part(name)
        if step is not None and not name.endswith((".index", DATA_SUFFIX)):
            raise _foreign(directory, step)
    for name in names:
        path = f"{directory}/{name}"
        if re.fullmatch(r"ckpt-\d+_temp", name):
            gfile.rmtree(path)
        elif name.startswith(TEMPORARY_MODEL) or _step_of_part(name) not in whole | {None}:
            gfile.remove(path)


def _step_of_part(name: str) -> int | None:
    """The step that a checkpoint's file belongs to, None for other files."""
    match = re.fullmatch(r"ckpt-(\d+)\.(index|data-.*)", name)
    return int(match[1]) if match else None


def write(directory: str, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], keep: int) -> None:
    """Write checkpoint `step`, name it the latest, and remove all but the `keep` newest.

    Killed at any line, this leaves the older checkpoints whole: files are renamed to their names when complete, the
    index last.
    """
    temporary = f"{directory}/ckpt-{step}_temp"
    if gfile.isdir(temporary):
        gfile.rmtree(temporary)
    gfile.makedirs(temporary)
    prefix = f"{temporary}/ckpt"
    blob = np.frombuffer(json.dumps(state).encode(), np.uint8)
    with tf.device("CPU:0"):
        named = {**tensors, STATE: tf.constant(blob)}
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
        gfile.rename(prefix + suffix, final + suffix, overwrite=True)
    gfile.rmtree(temporary)
    steps = steps_in(directory)
    _write_state_file(directory, steps[-keep:])
    for old in steps[:-keep]:
        for suffix in (".index", DATA_SUFFIX):
            gfile.remove(f"{directory}/ckpt-{old}{suffix}")


def read(directory: str, step: int) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays and the state of checkpoint `step`. Raises CheckpointError where it is not one of ours."""
    reader = tf.train.load_checkpoint(f"{directory}/ckpt-{step}")
    arrays = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    if STATE not in arrays:
        raise _foreign(directory, step)
    state: dict[str, Any] = json.loads(arrays.pop(STATE).tobytes())
    return arrays, state


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
    mark = {"uid": task.uid, "step": status.get("step"), "status": dict(status)}
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
        remove_half_written(self.settings.directory)
        remove_others_mark(self.settings.directory, uid)
        return steps_in(self.settings.directory)

    def write(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write checkpoint `step`. Raises what an earlier write in the background raised."""
        self.wait()
        self.last_step = step
        self._thread = threading.Thread(target=self._write, args=(step, tensors, state), name="checkpoint")
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

    def _write(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        try:
            write(self.settings.directory, step, tensors, state, self.settings.keep)
            self._report(checkpoint={"step": step, "time": timestamp()})
        except BaseException as error:
            self._error = error


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
