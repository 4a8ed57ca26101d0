# SPDX-License-Identifier: Apache-2.0
"""Where a run is shown: what its program prints, dtjob's own lines and, on a terminal, a live view below them.

A thread writes, so that a reader who does not read (`dtjob run … | less`) does not stop the run. The reconciler's log
goes to a file.
"""

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from dtjob.local.display.program_output import OfTask, ProgramOutput
from dtjob.local.display.snapshot import Snapshot
from dtjob.local.display.story import EVALUATOR, IMPORTING, Story, progress_text
from dtjob.local.terminal_line import plain, task_head
from dtjob.plan.actions import Event

PROGRESS_LINE_SECONDS = 10.0
"""Where no terminal is: for so long nothing may be said before dtjob says where training is."""
REDRAW_SECONDS = 0.1
LAST_SECONDS = 5.0
"""For which the rest of the program's output is shown after the end of a run."""

_log = logging.getLogger(__name__)


class Screen:
    """What is shown of one run. All but `shown` may be called from the thread of the run only."""

    def __init__(self, out: TextIO, program: ProgramOutput | None = None) -> None:
        """`program`: None if its output is not shown."""
        with contextlib.suppress(AttributeError, ValueError, OSError):
            out.reconfigure(errors="replace")  # type: ignore[attr-defined]  # a program may print what `out` cannot
        self.lines: list[str] = []
        """What dtjob has said."""
        self._out, self._program, self._by_task = out, program, program is not None and program.all_tasks
        self._began, self._last_line = time.monotonic(), 0.0
        self._story = Story()
        self._said: deque[str] = deque()
        self._view: tuple[Snapshot, bool] | None = None
        self._live: Any = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the run while this lasts; at its end, all that is left to show."""
        with self._redrawn():
            over = threading.Event()
            thread = threading.Thread(target=self._draw_until, args=(over,), name="screen")
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()

    def say(self, line: str) -> None:
        """Tell one line of dtjob's own."""
        self.lines.append(line)
        self._said.append(line)

    def event(self, event: Event) -> None:
        """Tell an event of the plan."""
        for line in self._story.event(event):
            self.say(line)

    def observe(self, snapshot: Snapshot, stopping: bool) -> None:
        """Take in a new look at the run: what is new is told, the view redrawn."""
        for line in self._story.observe(snapshot):
            if self._live is None or not line.startswith((EVALUATOR, IMPORTING)):  # which the view shows
                self.say(line)
        self._view = snapshot, stopping
        if self._live is not None or snapshot.recovering or snapshot.chief.get("state") != "training":
            return
        text, last = progress_text(snapshot), max(self._last_line, self._began)
        if text and not self._said and time.monotonic() - last >= PROGRESS_LINE_SECONDS:
            self.say(text)

    @contextlib.contextmanager
    def _redrawn(self) -> Iterator[None]:
        """Have a live view, on a terminal that can: on others rich would show nothing before the end."""
        from rich.console import Console
        from rich.live import Live

        console = Console(file=cast("TextIO", Unfailing(self._out)), highlight=False)
        if self._out is None or not self._out.isatty() or not console.is_terminal or console.is_dumb_terminal:
            yield
            return
        with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as self._live:
            yield

    def _draw_until(self, over: threading.Event) -> None:
        while not over.wait(REDRAW_SECONDS):
            self._draw()
        last = time.monotonic() + LAST_SECONDS
        while self._draw() and time.monotonic() < last:
            continue
        if self._program is not None:
            if left := self._program.left():
                self.say(f"{left / 1e6:.1f} MB more were printed; the log has them")
            self._write(self._program.end(live=self._live is not None))

    def _draw(self) -> bool:
        """Show what is new. Returns whether the program had printed something."""
        try:
            printed = self._program.new(live=self._live is not None) if self._program else []
            self._write(printed)
            return bool(printed)
        except Exception:  # a mistake in what is shown must not end the run
            _log.exception("the run cannot be shown")
            return False

    def _write(self, printed: list[OfTask]) -> None:
        said = [self._said.popleft() for _ in range(len(self._said))]
        if printed or said:
            self._last_line = time.monotonic()
        now = time.monotonic() - self._began
        if self._live is None:
            lines = [*(_in_text(one, self._by_task, now) for one in printed), *(_ours(now, text) for text in said)]
            if lines:
                write_line("\n".join(lines), self._out)
            return
        from dtjob.local.display.view import above, live_view, program_line

        texts = [program_line(one, self._by_task, now) for one in printed] + [above(now, text) for text in said]
        if texts:
            self._live.console.print(*texts, sep="\n", soft_wrap=True)
        if self._view is not None:
            snapshot, stopping = self._view
            unfinished = self._program.unfinished if self._program else ""
            self._live.update(live_view(snapshot, unfinished, stopping), refresh=True)


def _ours(at: float, line: str) -> str:
    return f"[{at:6.1f} s] {line}"


def _in_text(printed: OfTask, by_task: bool, now: float) -> str:
    """A line of the log where no terminal is: without colours."""
    head = task_head(printed.task) if by_task else ""
    text = plain(printed.line.text)
    return _ours(now, head + text) if printed.line.ours else head + text


class Unfailing:
    """A file for rich: what cannot be written is told to nobody."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """Write the text at once. Where it cannot be written, since the reader has gone (`dtjob run … | head`) or the
        disk is full, training goes on."""
        with contextlib.suppress(OSError, AttributeError):  # no descriptor, or no output at all (`>&-`)
            os.set_blocking(self._out.fileno(), True)  # a pipe that others made non-blocking would lose a part
        try:
            print(text, end="", file=self._out, flush=True)
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._out.fileno())
            os.close(nowhere)
        return len(text)

    def flush(self) -> None:
        """Nothing is left to write."""


def write_line(text: str, out: TextIO) -> None:
    """Print a line. What cannot be written is told to nobody."""
    Unfailing(out).write(f"{text}\n")


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
