# SPDX-License-Identifier: Apache-2.0
"""A process from which others are forked, so that TensorFlow is imported once for all tasks of a run.

`python -m dtjob_trainer.launcher` imports what a training process needs, and then forks a process for each request on
a socket (contract.md). It answers for one environment: what is read at import time must be that of the tasks. This file
imports nothing that takes time, as `launcher_ahead` is called first of all.
"""

import asyncio
import contextlib
import ctypes
import importlib.util
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MODULE = "dtjob_trainer.launcher"
READY_SECONDS = 120.0
"""For which the imports may take: many times what they take on a loaded machine."""
LONGEST_REQUEST = 1 << 20
ROOM_VARIABLE, ROOM_BYTES, ARGUMENT_BYTES = "DTJOB_ROOM", 8192, 1024
"""Room in which forked processes show their own variables and arguments in /proc."""
OUTPUT_BYTES = 2048
_PR_SET_CHILD_SUBREAPER = 36
_log = logging.getLogger(__name__)
_libc = ctypes.CDLL(None)


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a task that its manifest does not set, where `environ` is dtjob's."""
    own = {name: value for name, value in environ.items() if not name.startswith(("DTJOB_", "TF_CONFIG"))}
    return {**own, "PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0"}


def read_by_imports(environment: Mapping[str, str]) -> dict[str, str]:
    """What an import may read of a task's environment: all but what tells tasks apart.

    These are the contract's variables, and the GPUs of each: CUDA reads those when the first of them is used.
    """
    apart = ("DTJOB_", "CUDA_VISIBLE_DEVICES")
    return {name: value for name, value in environment.items() if not name.startswith(apart)}


class Adopted:
    """A child that a launcher forked for us. It has what asyncio's processes have and is used here."""

    def __init__(self, pid: int) -> None:
        """`pid` is a child of this process that nobody else waits for. Raises OSError where the kernel has no pidfd."""
        self.pid = pid
        self.returncode: int | None = None
        """As in subprocess; None until `poll` or `wait` has seen the end."""
        self._descriptor = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._descriptor)

    def fileno(self) -> int:
        """A descriptor that can be read once the process has ended."""
        return self._descriptor

    def poll(self) -> int | None:
        """The return code, None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody waited for all children
                pid, status = self.pid, 255 << 8
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signal it, where it still runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    async def wait(self) -> int:
        """Wait for its end in the running event loop; the return code. One waiter at a time."""
        while (code := self.poll()) is None:
            await readable(self)
        return code


async def readable(what: "Adopted | Launcher", seconds: float | None = None) -> None:
    """Wait until this descriptor can be read, so many seconds at most."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(what, news.set)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), seconds)
    finally:
        loop.remove_reader(what)


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

    _adopting = 0
    """How many launchers are being asked: this process adopts for each of them."""

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
        self.turn = asyncio.Lock()
        """Whoever has it may ask: a reply does not say who asked."""
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
        Launcher._adopting += 1
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            Launcher._adopting -= 1
            _libc.prctl(_PR_SET_CHILD_SUBREAPER, int(Launcher._adopting > 0), 0, 0, 0)

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


@contextlib.contextmanager
def launcher_ahead(manifest: Path) -> Iterator[Launcher | None]:
    """A launcher for tasks whose manifest sets no variables, as few do. It imports TensorFlow while dtjob imports what
    reads the manifest, and is ended with this at the latest.

    None if `manifest` is no file, or this machine cannot run it anyway, which is for others to tell.
    """
    launcher = None
    if sys.platform == "linux" and manifest.is_file() and importlib.util.find_spec("dtjob_trainer"):
        with contextlib.suppress(OSError):
            launcher = Launcher(read_by_imports(inherited(os.environ)))
    try:
        yield launcher
    finally:
        if launcher is not None:
            launcher.close()
