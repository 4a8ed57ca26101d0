# SPDX-License-Identifier: Apache-2.0
"""What the program of a run prints, out of the logs of its tasks. Frames of packages are left out of tracebacks."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dtjob.api.job import Job
from dtjob.local.display.log_lines import BEGINNINGS, Shown, shown
from dtjob.local.display.lost_peers import ErrorsHeld
from dtjob.local.display.terminal_line import TerminalLine, plain
from dtjob.local.log_files import GrowingLogs, LogFile
from dtjob.objects import topology
from dtjob.plan.record.log_tail import Frames

MOST_AT_ONCE, MOST_WITHOUT_A_VIEW = 1 << 16, 1 << 20
"""Bytes of one task's log that one look reads: a terminal takes some seconds for a megabyte."""


class OfTask(NamedTuple):
    """A line to show, and the task that printed it."""

    task: str
    line: Shown


@dataclass
class _Writing:
    """A task that writes to its log."""

    file: LogFile
    held: ErrorsHeld
    frames: Frames = field(default_factory=Frames)
    line: TerminalLine = field(default_factory=TerminalLine)


class ProgramOutput:
    """The output of the chief task's program, or of that of every task."""

    def __init__(self, logs: Path, job: Job, *, all_tasks: bool = False) -> None:
        """`logs`: the directory of the run's logs. What they have already is left out."""
        self.all_tasks = all_tasks
        chief = topology.chief_task(job).id
        wanted: Callable[[str], bool] = (lambda task: True) if all_tasks else (lambda task: task == chief)
        self._logs = GrowingLogs(logs, job.metadata.name, wanted, from_now=True)
        self._writing: dict[str, _Writing] = {}
        self._with_peers = {task.id for task in topology.tasks(job) if topology.connected(job, task)}

    def new(self, *, live: bool) -> list[OfTask]:
        """The lines that have ended since the last call. `live`: a view beside them shows steps and epochs."""
        found = []
        for file, added in self._logs.new(MOST_AT_ONCE if live else MOST_WITHOUT_A_VIEW):
            writing = self._writing.get(file.task)
            if writing is None or writing.file != file:
                found += self._end(file.task, live)
                writing = self._writing[file.task] = _Writing(file, ErrorsHeld(has_peers=file.task in self._with_peers))
            kept = [line for line in writing.line.write_bytes(added) if writing.frames.keeps(plain(line))]
            lines = [one for line in kept for one in shown(line, live=live)]
            found += [OfTask(file.task, one) for one in writing.held.take(lines, time.monotonic())]
        for task, writing in self._writing.items():
            found += [OfTask(task, one) for one in writing.held.take((), time.monotonic())]
        return found

    def end(self, *, live: bool) -> list[OfTask]:
        """The lines that were not ended, at the end of the run."""
        return [line for task in list(self._writing) for line in self._end(task, live)]

    @property
    def unfinished(self) -> str:
        """The line that the chief's program writes to, such as a progress bar. Empty if several tasks are shown."""
        text = "" if self.all_tasks else next((one.line.text for one in self._writing.values()), "")
        return "" if text.startswith(BEGINNINGS) else text

    def left(self) -> int:
        """Bytes that no call of `new` has read yet."""
        return self._logs.left()

    def _end(self, task: str, live: bool) -> list[OfTask]:
        writing = self._writing.pop(task, None)
        if writing is None:
            return []
        text = writing.line.end()
        lines = [*writing.held.take(shown(text, live=live) if text else (), 0.0), *writing.held.release()]
        return [OfTask(task, one) for one in lines]
