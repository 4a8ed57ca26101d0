# SPDX-License-Identifier: Apache-2.0
"""Where a run is told: a live view on a terminal, else lines; the reconciler's log goes to a file."""

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

from dtjob.local.display.snapshot import Snapshot
from dtjob.local.display.story import Story, progress_text
from dtjob.plan.actions import Event

PROGRESS_LINE_SECONDS = 5.0
REDRAW_PER_SECOND = 8


@dataclass
class Screen:
    """Where the story goes: a live view on a terminal, else lines."""

    out: TextIO
    live: Any = None
    began: float = field(default_factory=time.monotonic)
    story: Story = field(default_factory=Story)
    lines: list[str] = field(default_factory=list)
    last_progress: tuple[float, str] = (0.0, "")

    @contextlib.contextmanager
    def redrawn(self) -> Iterator[None]:
        """Show the live view, on a terminal that can: on others rich would show nothing before the end."""
        from rich.console import Console
        from rich.live import Live

        rate = REDRAW_PER_SECOND
        console = Console(file=cast("TextIO", Unfailing(self.out)))
        if not console.is_terminal or console.is_dumb_terminal:
            yield
            return
        with Live(console=console, refresh_per_second=rate, redirect_stdout=False, redirect_stderr=False) as live:
            self.live = live
            yield

    def say(self, line: str) -> None:
        """Tell one line of the story."""
        self.lines.append(line)
        if self.live is None:
            write_line(f"[{time.monotonic() - self.began:6.1f} s] {line}", self.out)

    def event(self, event: Event) -> None:
        """Tell an event of the plan."""
        for line in self.story.event(event):
            self.say(line)

    def observe(self, snapshot: Snapshot, stopping: bool) -> None:
        """Take in a new look at the run: what is new is told, the view redrawn."""
        for line in self.story.observe(snapshot):
            self.say(line)
        if self.live is not None:
            from dtjob.local.display.view import live_view

            self.live.update(live_view(snapshot, self.lines, stopping))
            return
        if snapshot.recovering or snapshot.chief.get("state") != "training":
            return
        at, text = time.monotonic(), progress_text(snapshot)
        if text and text != self.last_progress[1] and at - self.last_progress[0] >= PROGRESS_LINE_SECONDS:
            self.last_progress = at, text
            write_line(f"[{at - self.began:6.1f} s] {text}", self.out)


class Unfailing:
    """A file for rich, which writes to it from a thread of its own: what cannot be written is told to nobody."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """Write the text at once."""
        _write(text, self._out)
        return len(text)

    def flush(self) -> None:
        """Nothing is left to write."""


def write_line(text: str, out: TextIO) -> None:
    """Print a line. Where it cannot be written, since the reader has gone (`dtjob run … | head`) or the disk is full,
    training goes on and is told to nobody."""
    _write(f"{text}\n", out)


def _write(text: str, out: TextIO) -> None:
    with contextlib.suppress(OSError, AttributeError):  # no descriptor, or no output at all (`>&-`)
        os.set_blocking(out.fileno(), True)  # a pipe that others made non-blocking would lose what does not fit
    try:
        print(text, end="", file=out, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def log_to(file: Path, screen: Screen) -> Iterator[None]:
    """Keep the reconciler's log in a file, as lines between would tear the live view; errors are told once."""

    class Tell(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said = record.getMessage().splitlines()[0]
            if said not in screen.lines:
                screen.say(said)

    root = logging.getLogger()
    in_file, on_screen = logging.FileHandler(file), Tell(logging.ERROR)
    in_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = root.level
    root.setLevel(logging.INFO)
    root.addHandler(in_file)
    root.addHandler(on_screen)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(in_file)
        root.removeHandler(on_screen)
        in_file.close()
