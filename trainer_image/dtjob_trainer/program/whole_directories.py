# SPDX-License-Identifier: Apache-2.0
"""A directory of a SavedModel is of one task at any time, although several tasks may save to the same one.

`saved_model.pb` names the variables by keys whose order may differ between tasks: TensorFlow keeps the variables of a
function in a set. Beside the variables of another task, it would give the wrong weights in silence.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import glob
import inspect
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import wrapt

from dtjob_trainer.checkpoint.model_file import SAVED_MODEL
from dtjob_trainer.contract.task import Task

PATIENCE = 1.0
"""Seconds that a directory may be away while another task exchanges it."""


def save_directories_whole(task: Task) -> None:
    """Have this task write a SavedModel beside its directory, and exchange the directories then.

    What this task has saved, it reads from links to the files of one save. Both `tf.saved_model` and tf_keras do so.
    """
    from tensorflow.python.saved_model import load, save

    directories = _Directories(task.id)
    save.save_and_return_nodes = directories.writing(save.save_and_return_nodes, "export_dir")
    load.load_partial = directories.reading(load.load_partial, "export_dir")

    def of_legacy_models(name: str, wrapped: Callable[..., Any]) -> None:
        def replace(module: Any) -> None:
            setattr(module, name, wrapped(getattr(module, name)))

        wrapt.register_post_import_hook(replace, f"tf_keras.src.saving.legacy.saved_model.{name}")

    of_legacy_models("save", lambda original: directories.writing(original, "filepath"))
    of_legacy_models("load", lambda original: directories.reading(original, "path"))


class _Directories:
    """Replaces and reads directories in whole. `task`: a name for the directories beside them."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.saved: set[Path] = set()

    def writing(self, original: Callable[..., Any], argument: str) -> Callable[..., Any]:
        """`original`, which writes the directory that its argument of this name gives."""
        return self._with_directory(original, argument, self._written)

    def reading(self, original: Callable[..., Any], argument: str) -> Callable[..., Any]:
        """`original`, which reads the directory that its argument of this name gives."""
        return self._with_directory(original, argument, self._read)

    def _with_directory(
        self,
        original: Callable[..., Any],
        argument: str,
        instead: Callable[[Path], contextlib.AbstractContextManager[Path]],
    ) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            value = given.arguments.get(argument)
            path = os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else ""
            if not path or "://" in path:
                return original(*args, **kwargs)
            with instead(Path(path).resolve()) as directory:
                given.arguments[argument] = str(directory)
                return original(*given.args, **given.kwargs)

        return function

    def _beside(self, path: Path, use: str) -> Path:
        return path.with_name(f".{self.task}-{use}-{path.name}")

    @contextlib.contextmanager
    def _written(self, path: Path) -> Iterator[Path]:
        new = self._beside(path, "new")
        if path.name.startswith(f".{self.task}-new-") or not _may_exchange(path):  # tf_keras calls TensorFlow's save
            yield path
            return
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        try:
            yield new
            self._exchange(new, path)
            self.saved.add(path)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _exchange(self, new: Path, path: Path) -> None:
        """Have `new` be `path`. Files of the user's own in it stay; those of the earlier model go."""
        placed = False
        while not placed:
            with contextlib.suppress(FileNotFoundError):  # there is none yet, or another task has taken it away
                path.rename(self._beside(path, f"old{time.time_ns()}"))
            try:
                new.rename(path)
                placed = True
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # else another task was faster
                    raise
        for old in path.parent.glob(glob.escape(f".{self.task}-old") + f"[0-9]*-{glob.escape(path.name)}"):
            for each in old.iterdir():
                if each.name not in SAVED_MODEL:
                    _move(each, path)
            shutil.rmtree(old)

    @contextlib.contextmanager
    def _read(self, path: Path) -> Iterator[Path]:
        links = self._beside(path, "read")
        try:
            yield links if path in self.saved and _link(path, links) else path
        finally:
            shutil.rmtree(links, ignore_errors=True)


def _may_exchange(path: Path) -> bool:
    """Whether the directory `path`, which may not exist yet, can be renamed."""
    above = next(each for each in path.parents if each.is_dir())
    return not path.is_mount() and os.access(above, os.W_OK | os.X_OK)


def _move(file: Path, directory: Path) -> None:
    """Move `file` into `directory`. Raises FileNotFoundError if that stays away for a second."""
    given_up = time.monotonic() + PATIENCE
    while True:
        try:
            file.rename(directory / file.name)
            return
        except FileNotFoundError:  # another task is exchanging it
            if time.monotonic() > given_up:
                raise


def _link(path: Path, links: Path) -> bool:
    """Make `links` a directory of hard links to the files in `path`, all of one save.

    Returns whether this could be done: False on a file system without links, or if `path` stays away for a second.
    """
    given_up = time.monotonic() + PATIENCE
    while time.monotonic() < given_up:
        shutil.rmtree(links, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):  # another task is exchanging it
            before = path.stat().st_ino
            with contextlib.suppress(shutil.Error):
                shutil.copytree(path, links, copy_function=os.link)
                if path.stat().st_ino == before:
                    return True
            if path.stat().st_ino == before:
                return False
    return False
