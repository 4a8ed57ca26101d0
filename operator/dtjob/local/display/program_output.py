# SPDX-License-Identifier: Apache-2.0
"""What the program of a run prints, out of the logs of its tasks. Frames of packages are left out of tracebacks."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dtjob.api.job import Job
from dtjob.local.display.log_lines import BEGINNING, ErrorsHeld, Shown, shown
from dtjob.local.logs import GrowingLogs, LogFile
from dtjob.local.terminal_line import TerminalLine, plain
from dtjob.objects import topology
from dtjob.plan.record.failure import Frames

MOST_AT_ONCE, MOST_WITHOUT_A_VIEW = 1 << 16, 1 << 20
"""Bytes of one task's log that one look reads: a terminal takes some seconds for a megabyte."""


class OfTask(NamedTuple):
    """A line to show, and the task that printed it."""

    task: str
    line: Shown


class _Writing:
    """A task that writes to its log."""

    def __init__(self, file: LogFile, *, has_peers: bool) -> None:
        self.file, self.line = file, TerminalLine()
        self._held, self._frames = ErrorsHeld(has_peers=has_peers), Frames()

    def lines(self, added: bytes, *, live: bool) -> Iterable[OfTask]:
        """The lines to show now that this was added."""
        kept = [line for line in self.line.write_bytes(added) if self._frames.keeps(plain(line))]
        lines = [one for line in kept for one in shown(line, live=live)]
        return [OfTask(self.file.task, one) for one in self._held.take(lines, time.monotonic())]

    def end(self, *, live: bool) -> Iterable[OfTask]:
        """The lines that are left."""
        last = shown(text, live=live) if (text := self.line.end()) else ()
        lines = [*self._held.take(last, 0.0), *self._held.release()]
        return [OfTask(self.file.task, one) for one in lines]


class ProgramOutput:
    """The output of the chief task's program, or of that of every task."""

    def __init__(self, logs: Path, job: Job, *, all_tasks: bool = False) -> None:
        """`logs`: the directory of the run's logs. What they have already is left out."""
        self.all_tasks = all_tasks
        chief = topology.chief_task(job).id
        self._logs = GrowingLogs(logs, job.metadata.name, lambda task: all_tasks or task == chief, from_now=True)
        self._writing: dict[str, _Writing] = {}
        self._with_peers = {task.id for task in topology.tasks(job) if topology.connected(job, task)}

    def new(self, *, live: bool) -> list[OfTask]:
        """The lines that have ended since the last call. `live`: a view beside them shows steps and epochs."""
        found: list[OfTask] = []
        for file, added in self._logs.new(MOST_AT_ONCE if live else MOST_WITHOUT_A_VIEW):
            writing = self._writing.get(file.task)
            if writing is None or writing.file != file:
                if writing is not None:
                    found += writing.end(live=live)
                self._writing[file.task] = writing = _Writing(file, has_peers=file.task in self._with_peers)
            found += writing.lines(added, live=live)
        for writing in self._writing.values():
            found += writing.lines(b"", live=live)  # what was held back for long enough
        return found

    def end(self, *, live: bool) -> list[OfTask]:
        """The lines that were not ended, at the end of the run."""
        return [line for writing in self._writing.values() for line in writing.end(live=live)]

    @property
    def unfinished(self) -> str:
        """The line that the chief's program writes to, such as a progress bar. Empty if several tasks are shown."""
        text = "" if self.all_tasks else next((one.line.text for one in self._writing.values()), "")
        return "" if text.startswith(BEGINNING) else text

    def left(self) -> int:
        """Bytes that no call of `new` has read yet."""
        return self._logs.left()
