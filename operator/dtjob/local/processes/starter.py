# SPDX-License-Identifier: Apache-2.0
"""Starts the processes that stand for pods: forked from a launcher that has their environment, or by themselves."""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from dtjob.local.processes.command import Command
from dtjob.local.processes.inherited import read_by_imports
from dtjob.local.processes.launcher import REPLY_SECONDS, Launcher, Start
from dtjob.objects.pod.environment import INTEGRATION

SUPERVISOR = "dtjob_trainer"
LOOK_AGAIN_SECONDS = 1.0


class Process(Protocol):
    """A child of ours, as asyncio has them."""

    @property
    def pid(self) -> int:
        """Its id."""

    @property
    def returncode(self) -> int | None:
        """As in subprocess; None while it runs."""

    def send_signal(self, signal: int, /) -> None:
        """Send it a signal."""

    async def wait(self) -> int:
        """Wait for its end; the return code."""


class Starter:
    """Starts processes for one run, and ends the launchers with it."""

    def __init__(self, ahead: Launcher | None = None) -> None:
        """`ahead`: a launcher that was started already, for whichever environment; it is ours now."""
        self._ahead = ahead
        self._launchers: dict[frozenset[tuple[str, str]], Launcher] = {}
        self._answering: dict[Launcher, asyncio.Task[bool]] = {}
        self._forking = asyncio.Lock()

    def prepare(self, commands: Iterable[Command]) -> None:
        """Have a launcher for each environment of these that is another, and let it begin with its imports."""
        wanted = [read_by_imports(command.environment) for command in commands if is_forked(command)]
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            if ahead.environment in wanted:
                self._launchers[frozenset(ahead.environment.items())] = ahead
            else:
                ahead.close()
        for read in wanted:
            if frozenset(read.items()) not in self._launchers:
                with contextlib.suppress(OSError):
                    self._launchers[frozenset(read.items())] = Launcher(read)

    async def start(self, command: Command, log: Path) -> Process:
        """Start `command`, in a session of its own, its output added to the file `log`. Raises OSError."""
        with log.open("ab") as output:
            return await self._fork(command, output.fileno()) or await asyncio.create_subprocess_exec(
                *command.argv,
                env=command.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C in the terminal reaches dtjob only, which ends the others in order
            )

    def close(self) -> None:
        """End the launchers. What was started goes on."""
        for answering in self._answering.values():
            answering.cancel()
        for launcher in (*self._launchers.values(), *([self._ahead] if self._ahead else [])):
            launcher.close()

    async def _fork(self, command: Command, output: int) -> Process | None:
        """The process from the launcher of its environment; None if there is none, or it does not answer."""
        if not is_forked(command):
            return None
        launcher = self._launchers.get(frozenset(read_by_imports(command.environment).items()))
        if launcher is None or not await self._answers(launcher):
            return None
        start = Start(SUPERVISOR, command.argv[3:], command.environment, {"1": output, "2": output})
        async with self._forking:  # one at a time: an answer does not say whose it is
            with launcher.adopting():
                if not launcher.ask(start):
                    return None
                try:
                    await _readable(launcher, REPLY_SECONDS)
                except asyncio.CancelledError:
                    launcher.close()  # before it answers with a process that nobody waits for
                    raise
                return launcher.reply()

    async def _answers(self, launcher: Launcher) -> bool:
        """Wait until it answers or never will, together with all others that wait for it."""
        if launcher not in self._answering:
            self._answering[launcher] = asyncio.create_task(_answers(launcher))
        return await asyncio.shield(self._answering[launcher])


def is_forked(command: Command) -> bool:
    """Whether a launcher forks it: a supervisor, unless its program is to import TensorFlow by itself."""
    return command.argv[1:3] == ["-m", SUPERVISOR] and INTEGRATION not in command.environment


async def _answers(launcher: Launcher) -> bool:
    """Wait until the launcher answers or never will."""
    while (answers := launcher.answers()) is None:
        await _readable(launcher, LOOK_AGAIN_SECONDS)
    return answers


async def _readable(launcher: Launcher, seconds: float) -> None:
    """Wait until it has something to say, `seconds` at most."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(launcher, news.set)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), seconds)
    finally:
        loop.remove_reader(launcher)
