# SPDX-License-Identifier: Apache-2.0
"""A directory of a SavedModel is of one task at any time, although several tasks may save to the same one.

`saved_model.pb` names the variables by keys whose order may differ between tasks: TensorFlow keeps the variables of a
function in a set. Beside the variables of another task, it would give the wrong weights in silence.
"""

import contextlib
import ctypes
import errno
import inspect
import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from dtjob_trainer.checkpoint.model_file import SAVED_MODEL
from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, tensorflow, tf_keras
from dtjob_trainer.process import places

OF_A_SAVE = SAVED_MODEL | {"assets.extra", "debug", "saved_model.cpb"}
"""What saves write. All else in a directory is the user's own."""
_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""
PATIENCE = 1.0
"""Seconds that a directory may be away while another task exchanges it."""


def save_directories_whole(task: Task) -> None:
    """Have this task write a SavedModel beside its directory, and exchange the directories then.

    What this task has saved, it reads from links to the files of one save. Both `tf.saved_model` and tf_keras do so.
    """
    directories = _Directories(task.id)
    hooks.put(tensorflow.SAVED_MODEL_WRITTEN, lambda original: directories.writing(original, "export_dir"))
    hooks.put(tensorflow.SAVED_MODEL_READ, lambda original: directories.reading(original, "export_dir"))
    hooks.put(tf_keras.SAVED_MODEL_WRITTEN, lambda original: directories.writing(original, "filepath"))
    hooks.put(tf_keras.SAVED_MODEL_READ, lambda original: directories.reading(original, "path"))


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
        self._tidy(new, path)
        new.mkdir(parents=True)
        try:
            yield new
            written = OF_A_SAVE | {each.name for each in new.iterdir()}
            if path.is_dir():
                _copy_mode(path, new)
            _exchange(new, path)
            _keep_others(new, path, written)
            self.saved.add(path)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def _tidy(self, new: Path, path: Path) -> None:
        """Remove what a process left that was killed in a save. What the user had in the directory comes back."""
        if _away(new).is_dir():
            _put_back(_away(new), path)
        if path.is_dir():
            _keep_others(new, path, OF_A_SAVE)
        shutil.rmtree(new, ignore_errors=True)

    @contextlib.contextmanager
    def _read(self, path: Path) -> Iterator[Path]:
        links = self._beside(path, "read")
        whole = path in self.saved and not any(path.glob("assets/*"))  # a loaded model keeps the paths of its assets
        try:
            yield links if whole and _link(path, links) else path
        finally:
            if whole:
                shutil.rmtree(links, ignore_errors=True)


def _may_exchange(path: Path) -> bool:
    """Whether the directory `path`, which may not exist yet, can be renamed."""
    of_its_kind = path.is_dir() or not path.exists()
    may_write = os.access(places.directory_above(path), os.W_OK | os.X_OK)
    return of_its_kind and not os.path.ismount(path) and may_write


def _copy_mode(path: Path, new: Path) -> None:
    """Give `new` the mode and the group of `path`, which others may write to."""
    with contextlib.suppress(OSError):
        found = path.stat()
        os.chown(new, -1, found.st_gid)
        new.chmod(stat.S_IMODE(found.st_mode))


def _exchange(new: Path, path: Path) -> None:
    """Have `new` be `path`, and `path`, if there is one, be `new`.

    Where the file system cannot do that, the files of `new` go into `path`.
    """
    while True:
        try:
            if path.exists():
                _exchange_names(new, path)
            else:
                new.rename(path)
            return
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOENT) and new.exists():
                continue  # another task has made it, or taken it
            # of an image's layer, or of another user: it can be written and not renamed
            shutil.copytree(new, path, dirs_exist_ok=True)
            return


def _exchange_names(one: Path, other: Path) -> None:
    """Exchange two names, in one go where the file system can (renameat2 with RENAME_EXCHANGE). Raises OSError."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        _exchange_in_turn(one, other)
    elif rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise OSError(number, os.strerror(number), str(other))
        _exchange_in_turn(one, other)


def _exchange_in_turn(one: Path, other: Path) -> None:
    """The same by renaming one after the other, as on NFS: `other` is away for a moment. Raises OSError."""
    away = _away(one)
    other.rename(away)
    try:
        one.rename(other)
    except OSError:
        _put_back(away, other)
        raise
    away.rename(one)


def _away(new: Path) -> Path:
    return new.with_name(f"{new.name}-away")


def _put_back(away: Path, path: Path) -> None:
    """Have `away` be `path` again. If another task has made `path` meanwhile, it gets what the user had in it."""
    if not path.exists():
        away.rename(path)
        return
    _keep_others(away, path, OF_A_SAVE)
    shutil.rmtree(away)


def _keep_others(old: Path, path: Path, written: Collection[str]) -> None:
    """Move what is in `old` into `path`, but the names that a save has written and those that are there."""
    for each in old.iterdir() if old.is_dir() else ():
        if each.name not in written and not (path / each.name).exists():
            _move(each, path)


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
        with contextlib.suppress(FileNotFoundError), _opened(path) as directory:  # another task is exchanging it
            with contextlib.suppress(shutil.Error):
                shutil.copytree(path, links, copy_function=os.link)
                if _is_at(directory, path):
                    return True
            if _is_at(directory, path):
                return False
    return False


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The directory `path`. While it is open, no other directory gets its inode's number."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield directory
    finally:
        os.close(directory)


def _is_at(directory: int, path: Path) -> bool:
    """Whether the open `directory` is the one at `path`. Raises FileNotFoundError if there is none."""
    return os.path.samestat(os.fstat(directory), path.stat())
