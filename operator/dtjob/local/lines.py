# SPDX-License-Identifier: Apache-2.0
"""The lines of a run's logs, each with its task. A terminal has made of them what it shows."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from dtjob.local.display.terminal_line import TerminalLine
from dtjob.local.log_files import GrowingLogs, LogFile, log_files
from dtjob.local.runs import is_at_work, logs_of

LOOK_SECONDS = 0.2
Task = str


def lines(
    run: Path,
    job: str,
    task: str | None = None,
    *,
    previous: bool = False,
    attempt: int | None = None,
    tail: int | None = None,
) -> Iterator[tuple[Task, str]]:
    """The lines so far of a task, of a role or of all, one task after the other: they have no times.

    `previous`: of pods that were replaced. `attempt`: of pods with this number. `tail`: so many of the last lines of
    each pod.
    """
    files = log_files(logs_of(run), job, _wanted(task))
    newest = {file.task: file for file in files}
    for file in files:
        if not (previous and newest[file.task] == file) and attempt in (None, file.attempt):
            for line in deque(_lines(file.path), maxlen=tail):
                yield _name(file), line


def follow(run: Path, job: str, task: str | None = None) -> Iterator[tuple[Task, str]]:
    """The lines from the beginning until no `dtjob run` works on the job any more."""
    logs = GrowingLogs(logs_of(run), job, _wanted(task), from_now=False)
    reading: dict[LogFile, TerminalLine] = {}
    over = False
    while True:
        added = logs.new()
        for file, data in added:
            for line in reading.setdefault(file, TerminalLine()).write_bytes(data):
                yield _name(file), line
        if added:
            continue
        if over:  # and nothing has come since
            break
        over = not is_at_work(run.parent)
        time.sleep(0 if over else LOOK_SECONDS)
    for file, terminal in reading.items():
        if last := terminal.end():
            yield _name(file), last


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


def _name(file: LogFile) -> str:
    """The task, with the attempt if it is not the first."""
    return f"{file.task}.{file.attempt}" if file.attempt else file.task
