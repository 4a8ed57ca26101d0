# SPDX-License-Identifier: Apache-2.0
"""Starts the processes that stand for pods: forked from a launcher that has their environment, or by themselves."""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path

from dtjob.local.processes.command import Command
from dtjob.local.processes.launcher import Adopted, Launcher, Start, read_by_imports, readable
from dtjob.objects.pod.environment import INTEGRATION

SUPERVISOR = "dtjob_trainer"
LOOK_AGAIN_SECONDS = 1.0
REPLY_SECONDS = 30.0
"""For which a fork may take: it takes some hundredths of a second, and a stopped launcher is no reason to wait long."""
Process = asyncio.subprocess.Process | Adopted
"""A child of ours."""


class Starter:
    """Starts processes for one run, and ends the launchers with it."""

    def __init__(self, ahead: Launcher | None = None) -> None:
        """`ahead`: a launcher that was started already, for whichever environment; it is ours now."""
        self._launchers = [ahead] if ahead else []

    def prepare(self, commands: Iterable[Command]) -> None:
        """Have a launcher for each environment of these that is another, and let it begin with its imports."""
        wanted = [read_by_imports(command.environment) for command in commands if is_forked(command)]
        for launcher in [one for one in self._launchers if one.environment not in wanted]:
            launcher.close()
            self._launchers.remove(launcher)
        for environment in wanted:
            if self._launcher_of(environment) is None:
                with contextlib.suppress(OSError):
                    self._launchers.append(Launcher(environment))

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
        for launcher in self._launchers:
            launcher.close()

    def _launcher_of(self, environment: dict[str, str]) -> Launcher | None:
        return next((one for one in self._launchers if one.environment == environment), None)

    async def _fork(self, command: Command, output: int) -> Adopted | None:
        """The process from the launcher of its environment; None if there is none, or it does not answer."""
        launcher = self._launcher_of(read_by_imports(command.environment)) if is_forked(command) else None
        if launcher is None:
            return None
        start = Start(SUPERVISOR, command.argv[3:], command.environment, {"1": output, "2": output})
        async with launcher.turn:
            while launcher.answers() is None:
                await readable(launcher, LOOK_AGAIN_SECONDS)
            with launcher.adopting():
                if not launcher.ask(start):
                    return None
                try:
                    await readable(launcher, REPLY_SECONDS)
                except asyncio.CancelledError:
                    launcher.close()  # before it answers with a process that nobody waits for
                    raise
                return launcher.reply()


def is_forked(command: Command) -> bool:
    """Whether a launcher forks it: a supervisor, unless its program is to import TensorFlow by itself."""
    return command.argv[1:3] == ["-m", SUPERVISOR] and INTEGRATION not in command.environment
