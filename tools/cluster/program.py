# SPDX-License-Identifier: Apache-2.0
"""One program of a cluster as a child process, with its log, that never outlives its parent."""

import contextlib
import ctypes
import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

START_TIMEOUT = 120.0
"""Seconds that one program may take until it answers; a busy machine needs more than the usual few."""
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: a child may not import


class ProgramError(Exception):
    """A program did not come up; the message has the end of its log."""


def die_with_parent() -> None:
    """In a child, before its program starts: the kernel kills it when this process ends, however that comes."""
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """One running program with its log file."""

    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = command
        self.start_again()

    def start_again(self) -> None:
        """Start the same command, after `kill`. The thread that calls this must not end before the program."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.log.parent,
                start_new_session=True,  # a Ctrl-C at the terminal is for pytest, which then stops us in order
                preexec_fn=die_with_parent,
            )

    def kill(self) -> None:
        """SIGKILL to the process group, as in a crash. Waits for its end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Return once `ready` says so. Raises ProgramError when the program ends or takes too long."""
        limit = time.monotonic() + START_TIMEOUT
        while not ready():
            if self.process.poll() is not None:
                raise ProgramError(f"{self.name} ended with {self.process.returncode}:\n{self.last_lines()}")
            if time.monotonic() > limit:
                raise ProgramError(f"{self.name} was not ready after {START_TIMEOUT:.0f} s:\n{self.last_lines()}")
            time.sleep(0.05)

    def last_lines(self) -> str:
        """The end of the log, for messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def stop(self) -> None:
        """SIGTERM and, as open watches hold it up, SIGKILL after a second; to the process group. Waits for its end."""
        for number, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            try:
                self.process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                continue


def answers(url: str, context: ssl.SSLContext | None = None, token: str = "") -> bool:
    """Whether `url` answers 200."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=context),  # loopback, whatever the proxy
    )
    try:
        with opener.open(request, timeout=5) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False
