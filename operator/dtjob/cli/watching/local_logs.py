# SPDX-License-Identifier: Apache-2.0
"""`dtjob logs` of a run on this machine: the files below `.dtjob`, each line with its task."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from dtjob.api.phase import Phase
from dtjob.cli.watching.printer import Printer
from dtjob.local.display.terminal_line import TerminalLine
from dtjob.local.log_files import GrowingLogs, LogFile, log_files
from dtjob.local.runs import is_at_work, latest_run, logs_of, phase_of

LOOK_SECONDS = 0.2
SUCCEEDED, OTHERWISE = 0, 1


def run_here(work_directory: Path, job: str) -> Path | None:
    """The directory of the job's latest run on this machine, None if it has none."""
    return latest_run(work_directory / job)


def print_logs(
    run: Path, job: str, printer: Printer, task: str | None, *, previous: bool = False, tail: int | None = None
) -> int:
    """Print the logs so far, one task after the other: their lines have no times. Returns how many pods have one.

    `previous`: of pods that were replaced. `tail`: so many of the last lines of each pod.
    """
    files = log_files(logs_of(run), job, _wanted(task))
    newest = {file.task: file for file in files}
    files = [file for file in files if not (previous and newest[file.task] == file)]
    for file in files:
        for line in deque(_lines(file.path), maxlen=tail):
            printer.line(_name(file), line)
    return len(files)


def follow(run: Path, job: str, printer: Printer, task: str | None) -> int:
    """Print the logs from their beginning until no `dtjob run` works on the job any more.

    Returns 0 if the run has succeeded, else 1.
    """
    logs = GrowingLogs(logs_of(run), job, _wanted(task), from_now=False)
    reading: dict[LogFile, TerminalLine] = {}
    over = False
    while True:
        added = logs.new()
        for file, data in added:
            for line in reading.setdefault(file, TerminalLine()).write_bytes(data):
                printer.line(_name(file), line)
        if added:
            continue
        if over:  # and nothing has come since
            break
        over = not is_at_work(run.parent)
        time.sleep(0 if over else LOOK_SECONDS)
    for file, terminal in reading.items():
        if last := terminal.end():
            printer.line(_name(file), last)
    return SUCCEEDED if phase_of(run) == Phase.SUCCEEDED else OTHERWISE


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
