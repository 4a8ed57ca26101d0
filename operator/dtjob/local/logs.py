# SPDX-License-Identifier: Apache-2.0
"""The logs of a run on disk, a file for each pod: read as they are, or from one moment on while they grow."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from dtjob.api.spec.replica_specs import Role
from dtjob.local.runs import is_at_work, logs_of
from dtjob.local.terminal_line import TerminalLine
from dtjob.objects import topology

LOOK_SECONDS = 0.2
_ROLES = [role.value for role in Role]


class LogFile(NamedTuple):
    """The log of one attempt at a task."""

    path: Path
    task: str
    attempt: int

    @property
    def name(self) -> str:
        """The task, with the attempt if it is not the first."""
        return f"{self.task}.{self.attempt}" if self.attempt else self.task

    @property
    def place(self) -> tuple[int, int, int]:
        """Its place among the others: by role, index and attempt."""
        role, _, index = self.task.rpartition("-")
        return _ROLES.index(role), int(index), self.attempt


def log_files(directory: Path, job: str, wanted: Callable[[str], bool] = lambda task: True) -> list[LogFile]:
    """The logs of the job's pods in this directory, in order. `wanted`: whether a task counts."""
    found = []
    for path in directory.glob("*.log"):
        task, attempt = topology.named_attempt(job, path.stem)
        role, _, index = (task or "").rpartition("-")
        if task and attempt is not None and role in _ROLES and index.isdecimal() and wanted(task):
            found.append(LogFile(path, task, attempt))
    return sorted(found, key=lambda file: file.place)


class GrowingLogs:
    """What is added to the logs of a run, also to those that come later."""

    def __init__(self, directory: Path, job: str, wanted: Callable[[str], bool], *, from_now: bool) -> None:
        """`from_now`: leave out what the logs have already, which a run that is resumed adds to."""
        self._files: Callable[[], list[LogFile]] = lambda: log_files(directory, job, wanted)
        self._read = {file.path: _size(file.path) for file in self._files()} if from_now else {}
        """How many bytes of each file are read."""

    def new(self, most: int = 1 << 20) -> list[tuple[LogFile, bytes]]:
        """What was added since the last call, at most so many bytes of each file; empty if nothing was."""
        found = []
        for file in self._files():
            at = self._read.get(file.path, 0)
            with contextlib.suppress(OSError), file.path.open("rb") as log:
                log.seek(at)
                if added := log.read(most):
                    self._read[file.path] = at + len(added)
                    found.append((file, added))
        return found

    def left(self) -> int:
        """Bytes that are not read yet."""
        return sum(max(0, _size(file.path) - self._read.get(file.path, 0)) for file in self._files())


def lines(
    run: Path,
    job: str,
    task: str | None = None,
    *,
    previous: bool = False,
    attempt: int | None = None,
    tail: int | None = None,
) -> Iterator[tuple[str, str]]:
    """The lines so far of a task, of a role or of all, each with its task. They have no times, so one task follows the
    other.

    `previous`: of pods that were replaced. `attempt`: of pods with this number. `tail`: so many of the last lines of
    each pod. A terminal has made of each line what it shows.
    """
    files = log_files(logs_of(run), job, _wanted(task))
    newest = {file.task: file for file in files}
    for file in files:
        if not (previous and newest[file.task] == file) and attempt in (None, file.attempt):
            for line in deque(_lines(file.path), maxlen=tail):
                yield file.name, line


def follow(run: Path, job: str, task: str | None = None) -> Iterator[tuple[str, str]]:
    """The lines from the beginning until no `dtjob run` works on the job any more."""
    logs = GrowingLogs(logs_of(run), job, _wanted(task), from_now=False)
    reading: dict[LogFile, TerminalLine] = {}
    over = False
    while True:
        added = logs.new()
        for file, data in added:
            for line in reading.setdefault(file, TerminalLine()).write_bytes(data):
                yield file.name, line
        if added:
            continue
        if over:  # and nothing has come since
            break
        over = not is_at_work(run.parent)
        time.sleep(0 if over else LOOK_SECONDS)
    for file, terminal in reading.items():
        if last := terminal.end():
            yield file.name, last


def _lines(path: Path) -> Iterator[str]:
    terminal = TerminalLine()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            yield from terminal.write_bytes(data)
    if last := terminal.end():
        yield last


def _wanted(task: str | None) -> Callable[[str], bool]:
    """Whether a task is this one, or of this role."""
    return lambda one: task is None or task in (one, one.rpartition("-")[0])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
