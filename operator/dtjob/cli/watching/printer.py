# SPDX-License-Identifier: Apache-2.0
"""Prints lines of several tasks, and follows a job to its end."""

import os
import sys
from typing import TextIO

from dtjob.api.phase import Phase
from dtjob.client.cluster import Cluster
from dtjob.client.verbs.follow import follow
from dtjob.client.verbs.logs import ALL, How, Line
from dtjob.client.verbs.words import phase_of, summary
from dtjob.local.terminal_line import plain, seen, task_head

COLOURS = ("36", "32", "33", "35", "34", "96", "92", "93", "95", "94")
READER_GONE = 1


def can_draw(out: TextIO) -> bool:
    """Whether this is a terminal that knows colours and places."""
    return out.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


class Printer:
    """Prints lines of several tasks, by default to standard output, coloured on a terminal."""

    def __init__(self, out: TextIO | None = None, coloured: bool | None = None) -> None:
        self._out = out or sys.stdout
        self._coloured = can_draw(self._out) and not os.environ.get("NO_COLOR") if coloured is None else coloured
        self._colour: dict[str, str] = {}

    def line(self, task: str, text: str) -> None:
        """Print one line of a task."""
        colour = self._colour.setdefault(task, COLOURS[len(self._colour) % len(COLOURS)])
        head = task_head(task)
        text = seen(text) if self._coloured else plain(seen(text))
        try:
            self._out.write(f"\x1b[{colour}m{head}\x1b[0m{text}\n" if self._coloured else f"{head}{text}\n")
            self._out.flush()
        except BrokenPipeError:  # `| head` has ended. An exception would be told, as standard output is flushed.
            os._exit(READER_GONE)

    def logged(self, line: Line, *, timestamps: bool) -> None:
        """Print one line of a log, with its time or without."""
        self.line(line.task, f"{line.time} {line.text}" if timestamps else line.text)


def follow_job(
    cluster: Cluster, name: str, task: str | None = None, how: How = ALL, *, timestamps: bool = False
) -> int:
    """Print logs to standard output and phases to standard error until the job has ended.

    Returns 0 if it has succeeded and 1 if it has failed, was deleted, or waits for its user.
    """
    printer, said, phase = Printer(), "", ""
    for one in follow(cluster, name, task, how):
        if isinstance(one, Line):
            printer.logged(one, timestamps=timestamps)
            continue
        phase = "" if one is None else phase_of(one)
        line = "it was deleted" if one is None else summary(one)
        if line != said:
            said = line
            print(f"{name}: {line}", file=sys.stderr)
    return 0 if phase == Phase.SUCCEEDED else 1
