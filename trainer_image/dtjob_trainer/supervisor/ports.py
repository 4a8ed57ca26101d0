# SPDX-License-Identifier: Apache-2.0
"""The ports on which a supervisor listens: for its status, and at the chief task for the rendezvous."""

from collections.abc import Callable
from typing import Any

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.log_line import Facts
from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor.metrics import labels_of
from dtjob_trainer.supervisor.server import Register, RendezvousServer, Server, StatusServer


class PortInUse(Exception):
    """A port cannot be listened on. The message names the variable that sets it."""

    @property
    def facts(self) -> Facts:
        """The facts for the last log line. On another node, or later, the port may be free."""
        told = f"{type(self).__name__}: {self}"
        return {"exitCode": exit_codes.FAILED, "stepped": False, "exception": told, "transient": True}


async def listen(task: Task, status: Callable[[], dict[str, Any]], register: Register | None) -> None:
    """Listen on the ports that the task has. `register` answers registrations at the chief task. Raises PortInUse."""
    if register is not None and task.rendezvous_port is not None:
        await _start(task, RendezvousServer(register), "DTJOB_RENDEZVOUS_ADDRESS", task.rendezvous_port)
    if task.status_port:
        await _start(task, StatusServer(status, labels_of(task)), "DTJOB_STATUS_PORT", task.status_port)


async def _start(task: Task, server: Server, variable: str, port: int) -> None:
    try:
        # Under `dtjob run` all supervisors are on one machine, whose network others may use.
        await server.start("127.0.0.1" if task.parent else None, port)
    except OSError as error:
        raise PortInUse(f"{variable} {port} cannot be listened on: {error}") from None
