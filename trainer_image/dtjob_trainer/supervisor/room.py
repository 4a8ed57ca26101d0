"""Room for a training process: nothing of the one before it is left, and TensorFlow's port can be had."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from dtjob_trainer.contract import exit_codes, log_line
from dtjob_trainer.supervisor.port import port_is_free
from dtjob_trainer.supervisor.reaper import Reaper
from dtjob_trainer.supervisor.status import TaskStatus

KILL_SECONDS = 10.0
"""For which killed processes may take to be gone; then the container ends, as nobody else can end them."""
PORT_SECONDS = 30.0
"""For which another process may hold TensorFlow's port before the container ends."""


class Log(Protocol):
    """Prints a line of the supervisor's."""

    def __call__(self, message: str, level: log_line.Level = "info") -> None:
        """Print `message`."""


async def make_room(
    reaper: Reaper,
    spare: int | None,
    port: int | None,
    status: TaskStatus,
    terminating: Callable[[], bool],
    log: Log,
) -> int | None:
    """End what the last training process left behind, but `spare`; wait for `port`, unless `terminating` says that this
    is in vain. Returns an exit code if the container is to end."""
    left = await reaper.kill_all(KILL_SECONDS, spare=spare)
    if left:
        code = exit_codes.COULD_NOT_KILL
        log(f"processes {left} cannot be killed: ending the container with {code}", "error")
        return code
    deadline = time.monotonic() + PORT_SECONDS
    while port and not port_is_free(port) and not terminating():
        if time.monotonic() > deadline:
            code = exit_codes.FAILED
            log(f"port {port} of the cluster file is held by another process: ending with {code}", "error")
            return code
        status.message = f"waiting for port {port}, which another process holds"
        await asyncio.sleep(0.05)
    status.message = ""
    return None
