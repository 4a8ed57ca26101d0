# SPDX-License-Identifier: Apache-2.0
"""Directories that the program makes by `os.mkdir`, which fails if there is one already.

After a failure the program runs again from the top, and the directories that it has made may still be there. Under
`dtjob run`, tasks also share directories with absolute paths. In both cases `os.mkdir` takes the one that is there.
"""

import contextlib
import fcntl
import functools
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from dtjob_trainer.contract.task import Task

NAME = "dtjob-made-directories"
INSTEAD = "File exists, and the program runs again after a failure; write os.makedirs(path, exist_ok=True)"


def make_again(task: Task) -> None:
    """Have `os.mkdir`, which `os.makedirs` and `Path.mkdir` call, take directories that this job has made before.

    A process that makes the same directory twice gets FileExistsError, as without a job.
    """
    os.mkdir = taking(os.mkdir, record_of(task), runs_again=task.attempt > 0)


def record_of(task: Task) -> Path:
    """The file with the paths that were made: one for all tasks of a local run, and one in each container."""
    if task.parent is not None and task.termination_log:
        return Path(task.termination_log).parent.parent / NAME
    return Path(tempfile.gettempdir()) / NAME


def taking(mkdir: Callable[..., None], record: Path, *, runs_again: bool) -> Callable[..., None]:
    """The function `mkdir`, which writes paths to `record`, and takes directories that are there and recorded.

    - runs_again: whether the error for a directory that is not recorded says what to write.
    """
    by_this_process: set[str] = set()

    @functools.wraps(mkdir)
    def make(path: str | bytes | os.PathLike[str], mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None:
            mkdir(path, mode, dir_fd=dir_fd)
            return
        with _opened(record) as paths:
            try:
                mkdir(path, mode)
            except FileExistsError as error:
                real = os.path.realpath(os.fsdecode(path))
                if real in by_this_process or real not in paths.read().split("\0"):
                    if runs_again:
                        raise FileExistsError(error.errno, INSTEAD, error.filename) from None
                    raise
            else:
                real = os.path.realpath(os.fsdecode(path))
                paths.write(f"{real}\0")
            by_this_process.add(real)

    return make


@contextlib.contextmanager
def _opened(record: Path) -> Iterator[IO[str]]:
    """The file `record`, which no other task opens at the same time. It is empty if it cannot be written."""
    try:
        file = record.open("a+", errors="surrogateescape")
    except OSError:
        yield io.StringIO()
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # not each file system has locks
            yield io.StringIO()
            return
        file.seek(0)
        try:
            yield file
        finally:
            with contextlib.suppress(OSError):
                file.flush()
            fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file too
