# SPDX-License-Identifier: Apache-2.0
"""Training processes that are forked: TensorFlow is imported once in a test session for each environment it may read.

A template is `dtjob_trainer.launcher`, as `dtjob run` uses it. It ends with pytest at the latest.
"""

import atexit
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select
from typing import Protocol

from dtjob.local.processes.launcher import Adopted, Launcher, Start
from dtjob.local.processes.starter import REPLY_SECONDS

RUNNER = ("-m", "dtjob_trainer.run")

_launchers: dict[frozenset[tuple[str, str]], Launcher] = {}


class Process(Protocol):
    """What the tests use of a process."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A process that was forked from a template, as subprocess has one."""

    def __init__(self, process: Adopted) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        if self._process.poll() is None and not select([self._process], [], [], timeout)[0]:
            assert timeout is not None
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        code = self._process.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(
    arguments: Sequence[str], environ: Mapping[str, str], pipes: Mapping[str, int], output: int, directory: Path
) -> Process | None:
    """A training process with these arguments (of dtjob_trainer.run); None where no template answers."""
    start = Start(RUNNER[1], list(arguments), environ, {**pipes, "1": output, "2": output}, str(directory))
    launcher = _launcher(environ)
    with launcher.adopting():
        if launcher.ask(start):
            select([launcher], [], [], REPLY_SECONDS)
        process = launcher.reply()
    return Forked(process) if process else None


def execute(
    command: Sequence[str], environ: Mapping[str, str], pipes: Mapping[str, int], output: int, directory: Path
) -> Process:
    """The same in an interpreter of its own."""
    return subprocess.Popen(
        command,
        env={**environ, **{name: str(number) for name, number in pipes.items()}},
        pass_fds=tuple(pipes.values()),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        cwd=directory,
    )


def _launcher(environ: Mapping[str, str]) -> Launcher:
    """The template for this environment; what tells tasks apart is not read by imports."""
    read = {name: value for name, value in environ.items() if not name.startswith(("DTJOB_", "PYTEST_CURRENT_TEST"))}
    key = frozenset(read.items())
    launcher = _launchers.get(key)
    if launcher is None or launcher.answers() is False:
        launcher = _launchers[key] = Launcher(read)
        atexit.register(launcher.close)
        while launcher.answers() is None:
            select([launcher], [], [], 1.0)
    return launcher
