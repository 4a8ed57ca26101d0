# SPDX-License-Identifier: Apache-2.0
"""Makes room for a training process: ends what the one before it left, and waits until TensorFlow's port is free."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Protocol

from dtjob_trainer.contract import exit_codes, log_line
from dtjob_trainer.supervisor.reaper import Reaper
from dtjob_trainer.supervisor.status import TaskStatus

KILL_SECONDS = 10.0
"""Killed processes have so long to be gone. After that the container ends, as nothing else can end them."""
PORT_SECONDS = 30.0
"""Another process may hold TensorFlow's port for so long. After that the container ends."""


class Log(Protocol):
    """Prints a log line of the supervisor."""

    def __call__(self, message: str, level: log_line.Level = "info") -> None:
        """Print `message`."""


async def make_room(
    reaper: Reaper, spare: int | None, port: int | None, status: TaskStatus, terminating: Callable[[], bool], log: Log
) -> int | None:
    """End the processes that the last training process left, except `spare`. Then wait until `port` is free.

    Stops waiting once `terminating` returns True. Returns an exit code if the container must end.
    """
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


def port_is_free(port: int) -> bool:
    """Whether TensorFlow can listen on TCP `port`. Connections in TIME_WAIT do not prevent that."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
