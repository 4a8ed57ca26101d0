# SPDX-License-Identifier: Apache-2.0
"""A process from which others are forked, so that TensorFlow is imported once for all tasks of a run.

`python -m dtjob_trainer.launcher` imports what a training process needs, and then forks a process for each request on
a socket (contract.md). It answers for one environment: what is read at import time must be that of the tasks.
"""

import contextlib
import ctypes
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from select import select

from dtjob.local.processes.adopted import Adopted

MODULE = "dtjob_trainer.launcher"
READY_SECONDS = 120.0
"""For which the imports may take: many times what they take on a loaded machine."""
REPLY_SECONDS = 30.0
"""For which a fork may take: it takes some hundredths of a second, and a stopped launcher is no reason to wait long."""
LONGEST_REQUEST = 1 << 20
ROOM_VARIABLE, ROOM_BYTES, ARGUMENT_BYTES = "DTJOB_ROOM", 8192, 1024
"""Room in which forked processes show their own variables and arguments in /proc."""
OUTPUT_BYTES = 2048
_PR_SET_CHILD_SUBREAPER = 36
_log = logging.getLogger(__name__)
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Start:
    """What a forked process is to be."""

    module: str
    """`dtjob_trainer` (a supervisor) or `dtjob_trainer.run` (a training process)."""
    arguments: list[str]
    environment: Mapping[str, str]
    descriptors: Mapping[str, int] = field(default_factory=dict)
    """Ours, by the variable that names them there, or by the number that they get there ("1" and "2")."""
    directory: str | None = None


class Launcher:
    """One such process. It ends with us at the latest."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it; its imports see `environment`. Raises OSError."""
        self.environment = dict(environment)
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process is there)
        command = [sys.executable, "-m", MODULE, str(theirs.fileno()), str(os.getpid()), "." * ARGUMENT_BYTES]
        with theirs:
            self._process = subprocess.Popen(
                command,
                env={**environment, ROOM_VARIABLE: "." * ROOM_BYTES},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,  # Ctrl-C in the terminal is for us alone
            )
        self._deadline = time.monotonic() + READY_SECONDS
        self._answers: bool | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def fileno(self) -> int:
        """A descriptor that can be read once `answers` has something to say."""
        return self._ours.fileno()

    def answers(self) -> bool | None:
        """Whether it does: None while it imports, False if it never will."""
        if self._answers is None:
            try:
                self._answers = bool(self._ours.recv(64, socket.MSG_DONTWAIT))
            except BlockingIOError:
                self._answers = False if time.monotonic() > self._deadline else None
            except OSError:
                self._answers = False
            if self._answers is False:
                self._give_up("it does not come to answer")
        return self._answers

    def wait(self) -> bool:
        """Wait until it answers, or never will."""
        while (answers := self.answers()) is None:
            select([self._ours], [], [], 1.0)
        return answers

    def launch(self, start: Start) -> Adopted | None:
        """Fork a process, which becomes our child; None if it does not answer: start the process without it."""
        with self.adopting():
            if self.ask(start):
                select([self._ours], [], [], REPLY_SECONDS)
            return self.reply()

    def ask(self, start: Start) -> bool:
        """Ask for a process, while `adopting`. Follow with `reply`, once there is something to read or it is late."""
        if not self.answers():
            return False
        request = {
            "module": start.module,
            "arguments": start.arguments,
            "environ": dict(start.environment),
            "descriptors": list(start.descriptors),
            "directory": start.directory,
        }
        try:
            socket.send_fds(self._ours, [json.dumps(request).encode()], list(start.descriptors.values()))
        except OSError as error:
            self._give_up(str(error))
        return bool(self._answers)

    def reply(self) -> Adopted | None:
        """The process that was asked for; None if there is no answer: start it without this launcher, which ends."""
        pid = None
        try:
            if self._answers:
                pid = int(self._ours.recv(64, socket.MSG_DONTWAIT))
                return Adopted(pid)
        except (OSError, ValueError) as error:
            if pid is not None:  # the kernel has no pidfd
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            # an answer that came later would be a process that nobody waits for
            self._give_up(str(error))
        return None

    @staticmethod
    @contextlib.contextmanager
    def adopting() -> Iterator[None]:
        """Adopt the orphans of our descendants. Not for longer than needed: nobody waits for others here."""
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

    def close(self) -> None:
        """End it. What was forked from it goes on."""
        self._answers = False
        self._process.kill()
        self._process.wait()
        self._ours.close()
        self._output.close()

    def _give_up(self, reason: str) -> None:
        self._output.seek(max(0, os.fstat(self._output.fileno()).st_size - OUTPUT_BYTES))
        printed = self._output.read().decode(errors="replace").strip()
        _log.warning("launcher %d is given up, each task imports TensorFlow: %s\n%s", self.pid, reason, printed)
        self.close()
