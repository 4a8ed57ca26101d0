# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal of its own, and what somebody at that terminal sees."""

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from select import select

import pyte

SCROLLBACK_LINES = 2000


class Terminal:
    """Runs a command with a terminal for its input and output, which is read as one emulates it."""

    def __init__(
        self, command: Sequence[str], *, columns: int = 80, lines: int = 24, directory: Path | None = None
    ) -> None:
        """Start the command in `directory`."""
        self.screen = pyte.HistoryScreen(columns, lines, history=SCROLLBACK_LINES, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(lines)}
        self.process = subprocess.Popen(
            list(command),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
        )
        os.close(theirs)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        """End the command, with Ctrl-C first, so that it can end what it has started."""
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                with contextlib.suppress(TimeoutError):
                    self.wait_until(lambda: self.process.poll() is not None, seconds=20.0)
        os.close(self._ours)

    def wait_until(self, reached: Callable[[], bool], seconds: float) -> None:
        """Read what comes until `reached` holds. Raises TimeoutError with the screen after so many seconds."""
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError("\n".join(self.text()))
            self._read(0.1)

    def type(self, text: str) -> None:
        """Type the text, such as Ctrl-C (`\\x03`)."""
        os.write(self._ours, text.encode())

    def end(self, seconds: float) -> int:
        """Read to the end of the command. Returns its exit code."""
        self.wait_until(lambda: self.process.poll() is not None, seconds)
        while self._read(0.0):
            continue
        return self.process.returncode

    def rows(self) -> list[dict[int, pyte.screens.Char]]:
        """All lines from the first that has scrolled away to the last on the screen: characters by column."""
        shown = [self.screen.buffer[line] for line in range(self.screen.lines)]
        return [*self.screen.history.top, *shown]

    def text(self) -> list[str]:
        """These lines as text, without the empty ones at the end."""
        columns = range(self.screen.columns)
        lines = ["".join(row[column].data for column in columns).rstrip() for row in self.rows()]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _read(self, seconds: float) -> bool:
        """Take what has come, wait for it so long. Returns whether something came."""
        if not select([self._ours], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux: nobody has the other end any more
            if self.process.poll() is None:
                time.sleep(seconds)
            return False
        self._stream.feed(data)
        return bool(data)
