# SPDX-License-Identifier: Apache-2.0
"""The logs of a run on disk, a file for each pod: read from one moment on while they grow."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dtjob.api.spec.replica_specs import Role
from dtjob.objects import topology

SUFFIX = ".log"
_ROLES = [role.value for role in Role]


@dataclass(frozen=True)
class LogFile:
    """The log of one attempt at a task."""

    path: Path
    task: str
    attempt: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Its place among the others: by role, index and attempt."""
        role, _, index = self.task.rpartition("-")
        return _ROLES.index(role), int(index), self.attempt


def log_files(directory: Path, job: str, wanted: Callable[[str], bool] = lambda task: True) -> list[LogFile]:
    """The logs of the job's pods in this directory, in order. `wanted`: whether a task counts."""
    found = []
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            task, attempt = topology.named_attempt(job, path.name.removesuffix(SUFFIX))
            if path.suffix == SUFFIX and task is not None and attempt is not None and _is_task(task) and wanted(task):
                found.append(LogFile(path, task, attempt))
    return sorted(found, key=lambda file: file.place)


def _is_task(name: str) -> bool:
    role, _, index = name.rpartition("-")
    return role in _ROLES and index.isdecimal()


class GrowingLogs:
    """What is added to the logs of a run, also to those that come later."""

    def __init__(self, directory: Path, job: str, wanted: Callable[[str], bool], *, from_now: bool) -> None:
        """`from_now`: leave out what the logs have already, which a run that is resumed adds to."""
        self._directory, self._job, self._wanted = directory, job, wanted
        self._read: dict[Path, int] = {}
        """How many bytes of each file are read."""
        if from_now:
            self._read = {file.path: _size(file.path) for file in log_files(directory, job, wanted)}

    def new(self, most: int = 1 << 20) -> list[tuple[LogFile, bytes]]:
        """What was added since the last call, at most so many bytes of each file; empty if nothing was."""
        found = []
        for file in log_files(self._directory, self._job, self._wanted):
            at = self._read.get(file.path, 0)
            if _size(file.path) <= at:
                continue
            with contextlib.suppress(OSError), file.path.open("rb") as log:
                log.seek(at)
                if added := log.read(most):
                    self._read[file.path] = at + len(added)
                    found.append((file, added))
        return found

    def left(self) -> int:
        """Bytes that are not read yet."""
        files = log_files(self._directory, self._job, self._wanted)
        return sum(max(0, _size(file.path) - self._read.get(file.path, 0)) for file in files)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
