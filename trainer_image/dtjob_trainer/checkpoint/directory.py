# SPDX-License-Identifier: Apache-2.0
"""What is in a checkpoint directory: which checkpoints are whole, what they hold, what a killed save left."""

import errno
import json
import os
import re
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import tensorflow as tf

from dtjob_trainer.checkpoint import object_store
from dtjob_trainer.errors import CheckpointError
from dtjob_trainer.process.failure import may_pass

gfile = tf.io.gfile
STATE = "state"
"""Name of the tensor that holds everything that is no variable: JSON as bytes (uint8). Arrays of it are apart."""
DATA_SUFFIX = ".data-00000-of-00001"
"""How the only data file of a checkpoint ends. Large tables of parameter servers are in several."""
INDEX = ".index"
"""How the index ends. It is written and named last, so where it is all is."""
TEMPORARY_MODEL = ".saving-"
"""Prefix of a model file that is not whole yet."""
DAMAGED = "damaged-"
"""Prefix of the files of a checkpoint that could not be read, which are kept for whoever wants to look into it."""
PROBE = ".dtjob-can-write"
"""A file that is written to see whether one can be."""
SEEN = ".dtjob-seen-"
"""Prefix of files that are written to see whether parameter servers have the directory, too."""
UNREADABLE = (tf.errors.DataLossError, tf.errors.OutOfRangeError)
"""What TensorFlow raises for a damaged checkpoint: a wrong checksum, a file that is cut off."""
GONE = (tf.errors.NotFoundError, tf.errors.AbortedError, *UNREADABLE)
"""What it raises for one that is removed while it is read; Aborted on NFS, for a stale handle (ESTALE)."""

NOT_FLUSHED = (errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOTSUP)
"""What a system answers that cannot flush a directory: this process may write there and not read, or drivers do no such
thing."""


def foreign(directory: str, step: int) -> CheckpointError:
    """The error for a checkpoint that is not ours."""
    return CheckpointError(
        f"{directory}/ckpt-{step} was not written by dtjob; choose another checkpoint.storage, or move it away"
    )


def make_writable(directory: str) -> None:
    """Make `directory` where it is not there, write a small file there, rename it, and remove it.

    Raises CheckpointError where that cannot be done.
    """
    probe, done, mend = f"{directory}/{PROBE}", "be written to", ""
    try:
        make_directory(directory)
        with gfile.GFile(f"{probe}.tmp", "w") as file:
            file.write("dtjob can write here\n")
        done, mend = "rename files", "; choose one that can: some drivers that mount buckets cannot"
        gfile.rename(f"{probe}.tmp", probe, overwrite=True)
        done, mend = "be written to", ""
        gfile.remove(probe)
    except (tf.errors.OpError, OSError) as error:
        why = error.message if isinstance(error, tf.errors.OpError) else error.strerror
        raise CheckpointError(
            f"checkpoint.storage {directory} cannot {done}: {why}{mend or _mend_of(error)}"
        ) from error


def make_directory(directory: str) -> None:
    """Make a directory where it is not there, and those above it, and bring their names to disk."""
    above = [] if "://" in directory else [Path(directory), *Path(directory).parents]
    new = [each for each in above if not each.exists()]
    gfile.makedirs(directory)
    for each in new:
        flush_names(str(each.parent))


def _mend_of(error: Exception) -> str:
    if may_pass(error):
        return ""
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return "; make room there, or choose another"
    return (
        f"; let user {os.geteuid()} write there (securityContext.fsGroup in the pod template, or on NFS the export's "
        "owner), or choose another"
    )


def steps_in(directory: str) -> list[int]:
    """The steps of all whole checkpoints in `directory`, oldest first; empty where it does not exist.

    Raises what else keeps it from being listed: no checkpoint is taken for gone because storage was away for a moment.
    """
    return _whole(_names_in(directory))


def _names_in(directory: str) -> set[str]:
    """The names in `directory`; none only where it does not exist. Raises OSError or one of TensorFlow's errors."""
    if "://" not in directory:
        try:
            return {path.name for path in Path(directory).iterdir()}
        except FileNotFoundError:
            return set()
    try:
        gfile.stat(directory)
    except tf.errors.NotFoundError:
        return set()
    try:
        return {entry.rstrip("/") for entry in gfile.listdir(directory)}
    except tf.errors.NotFoundError as error:  # so listdir calls whatever went wrong as it looked for the directory
        lost = OSError(errno.EIO, str(error))  # as of any file system that is away: it may pass
        raise CheckpointError(f"checkpoint.storage {directory} is there, but cannot be listed") from lost


def _whole(names: Set[str]) -> list[int]:
    """The steps of which all files are among `names`, oldest first."""
    found = (re.fullmatch(r"ckpt-(\d+)\.index", name) for name in names)
    return sorted(int(match[1]) for match in found if match and _has_data(f"ckpt-{match[1]}", names))


def _has_data(name: str, names: Set[str]) -> bool:
    """Whether all data files of checkpoint `name` are among `names`."""
    found = (re.fullmatch(rf"{name}\.data-\d{{5}}-of-(\d{{5}})", each) for each in names)
    of = {int(match[1]) for match in found if match}
    return any(all(f"{name}.data-{k:05}-of-{total:05}" in names for k in range(total)) for total in of)


def files_of(directory: str, name: str, names: Set[str] | None = None) -> list[str]:
    """The ends of the names of the files of checkpoint `name` (such as `ckpt-5`), the index last.

    - names: those in the directory, if they are known.
    """
    there = _names_in(directory) if names is None else names
    found = (re.fullmatch(rf"{name}(\.index|\.data-.*)", each) for each in there)
    return sorted((match[1] for match in found if match), key=lambda end: (end == INDEX, end))


def clear_half_written(directory: str) -> None:
    """End or remove what a killed process left of a save, so that nothing torn is ever read.

    What is torn is decided from one listing. Raises as `steps_in` does, and CheckpointError where some of several data
    files are missing beside their index, as no save of ours leaves it. It then changes nothing.
    """
    names = _names_in(directory)
    whole = set(_whole(names))
    for name in names:
        step, one_of_several = _step_of_part(name), not name.endswith((INDEX, DATA_SUFFIX))
        if step is not None and step not in whole and one_of_several and f"ckpt-{step}{INDEX}" in names:
            raise foreign(directory, step)
    ended = [_end_save(directory, name, names) for name in names if re.fullmatch(r"ckpt-\d+_temp", name)]
    names = names.union(*ended)
    whole = set(_whole(names))
    for name in names:
        if name.startswith((TEMPORARY_MODEL, SEEN)) or _step_of_part(name) not in whole | {None}:
            remove(f"{directory}/{name}")


def _end_save(directory: str, temporary: str, names: Set[str]) -> set[str]:
    """Name the files of a save that was all there, where its checkpoint is not among `names`; the names given."""
    name, there = temporary.removesuffix("_temp"), _names_in(f"{directory}/{temporary}")
    parts = files_of("", "ckpt", there)  # some data may have got their names before the kill
    if f"{name}{INDEX}" in names or INDEX not in parts:
        parts = []
    if parts:
        flush(f"{directory}/{temporary}")  # the kill may have come before
    name_finally(f"{directory}/{temporary}/ckpt", f"{directory}/{name}", parts)
    gfile.rmtree(f"{directory}/{temporary}")
    return {name + part for part in parts}


def remove(path: str) -> None:
    """Remove a file, or a directory with all that is in it."""
    if gfile.isdir(path):
        gfile.rmtree(path)
    else:
        gfile.remove(path)


def remove_checkpoint(directory: str, name: str) -> None:
    """Remove the files of checkpoint `name`, the index first; nothing where there is none."""
    for end in reversed(files_of(directory, name)):
        gfile.remove(f"{directory}/{name}{end}")
        if end == INDEX:
            flush_names(directory)


def set_aside(directory: str, step: int) -> None:
    """Rename checkpoint `step`, which cannot be read, so that nobody takes it for the newest."""
    for end in reversed(files_of(directory, f"ckpt-{step}")):
        gfile.rename(f"{directory}/ckpt-{step}{end}", f"{directory}/{DAMAGED}ckpt-{step}{end}", overwrite=True)
        if end == INDEX:
            flush_names(directory)
    if left := steps_in(directory):
        write_state_file(directory, left)


def _step_of_part(name: str) -> int | None:
    """The step that a checkpoint's file belongs to, None for other files."""
    match = re.fullmatch(r"ckpt-(\d+)\.(index|data-.*)", name)
    return int(match[1]) if match else None


def name_finally(prefix: str, final: str, parts: Sequence[str]) -> None:
    """Give the files of a complete save their names; `parts`: the ends of those that have not got them yet.

    These names are on disk before the index has its name, and that too before this returns.
    """
    directory = final.rpartition("/")[0]
    for part in parts:
        if part == INDEX:
            flush_names(directory)
        gfile.rename(prefix + part, final + part, overwrite=True)
    flush_names(directory)


def write_state_file(directory: str, steps: list[int]) -> None:
    """TensorFlow's own file `checkpoint`, so that tf.train.latest_checkpoint works on the directory."""
    lines = [f'model_checkpoint_path: "ckpt-{steps[-1]}"']
    lines += [f'all_model_checkpoint_paths: "ckpt-{step}"' for step in steps]
    write_text(f"{directory}/checkpoint", "\n".join(lines) + "\n")


def write_text(path: str, text: str, *, temporary: str = "") -> None:
    """Write a small file whole or not at all, and bring it and its name to disk.

    - temporary: path of the file until it is whole, which other writers do not use. It is then not brought to disk.
    """
    at_once = object_store.holds(path)
    written = path if at_once else temporary or f"{path}.tmp"
    with gfile.GFile(written, "w") as file:
        file.write(text)
    if at_once:
        return
    if not temporary:
        flush(written)
    gfile.rename(written, path, overwrite=True)
    if not temporary:
        flush_names(path.rpartition("/")[0])


def read_object(path: str) -> dict[str, Any] | None:
    """The JSON object in a small file; None where there is no file, and empty where that holds no such object.

    A power cut can leave a file empty that had its name before its content.
    """
    try:
        with gfile.GFile(path) as file:
            found = json.loads(file.read())
    except tf.errors.NotFoundError:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def flush(path: str) -> None:
    """Have a file, or a directory with all that is in it, on disk before its name says that it is whole.

    Object stores do that by themselves.
    """
    if "://" in path:
        return
    inside = [*Path(path).rglob("*"), Path(path)]
    for file in inside:
        if not file.is_dir():
            _flush(file)
    if Path(path).is_dir():
        for directory in (*filter(Path.is_dir, inside), Path(path).parent):
            flush_names(str(directory))


def flush_names(directory: str) -> None:
    """Have the names in a directory on disk. A power loss may undo those that are not, in any order."""
    if "://" in directory:
        return
    try:
        _flush(Path(directory))
    except OSError as error:
        if error.errno not in NOT_FLUSHED:
            raise


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
