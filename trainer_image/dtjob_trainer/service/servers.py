# SPDX-License-Identifier: Apache-2.0
"""The servers of tf.data service: the dispatcher in the chief task's training process, a worker in each data worker.

The dispatcher lives and ends with the training that needs it, so it keeps no journal. A new dispatcher counts its tasks
from the beginning. A data worker that had tasks of the old one could take the new ones for these. So it watches the
dispatcher's process by an open connection, and begins anew when that ends.
"""

import os
import socket
import sys
import time
from typing import Any, NoReturn

from dtjob_trainer.contract import exit_codes, log_line
from dtjob_trainer.contract.task import Task, port_of
from dtjob_trainer.errors import TaskError
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.service.lost_workers import LOOK_SECONDS, LostWorkers, connect

HEARTBEAT_MS = 1000
"""How often a data worker asks the dispatcher for tasks."""
POLL_SECONDS = 0.2
RENEW_SECONDS = 20.0
"""A connection is replaced after so long. The dispatcher closes one on which nobody says anything after 120 s."""
_dispatchers: list[Any] = []


def dispatch(task: Task) -> None:
    """Run the dispatcher of the job of `task` in this process from now on. Raises TaskError if its port is taken."""
    import tensorflow as tf

    service = tf.data.experimental.service
    port = port_of(task.data_service)
    try:
        _dispatchers.append(service.DispatchServer(service.DispatcherConfig(port=port, protocol="grpc")))
    except (tf.errors.OpError, RuntimeError) as error:
        raise TaskError(f"network.dataPort {port} cannot be listened on: {error}") from None


def serve(here: Runtime, task: Task) -> NoReturn:
    """Make examples for the training until SIGTERM."""
    import tensorflow as tf

    service = tf.data.experimental.service
    dispatcher, own = task.data_service, task.data_address
    here.shutdown.training_begins()
    log_line.write(sys.stdout, f"waits for the chief task at {dispatcher}", task=task.id)
    while not here.shutdown.signalled:
        if (line := connect(dispatcher)) is None:
            here.shutdown.wait_signalled(POLL_SECONDS)
            continue
        config = service.WorkerConfig(dispatcher, own, port_of(own), "grpc", heartbeat_interval_ms=HEARTBEAT_MS)
        server = service.WorkerServer(config)
        here.progress.report(state="serving")
        log_line.write(sys.stdout, f"makes examples for the chief task at {dispatcher}", task=task.id)
        _watch(here, dispatcher, line, LostWorkers(dispatcher) if task.index == 0 else None)
        del server  # which stops it
    os._exit(exit_codes.TERMINATED)


def _watch(here: Runtime, dispatcher: str, line: socket.socket, lost: LostWorkers | None = None) -> None:
    """Return when the process of the dispatcher has ended, or this task got SIGTERM. Looks after `lost` meanwhile."""
    waited = looked = 0.0
    while not here.shutdown.wait_signalled(POLL_SECONDS):
        if _is_closed(line):
            return
        if lost is not None and time.monotonic() - looked >= LOOK_SECONDS:
            lost.look()
            looked = time.monotonic()
        waited += POLL_SECONDS
        # a name that is not found for a moment is no end: the worker would lose the elements that it has
        if waited >= RENEW_SECONDS and (following := connect(dispatcher)) is not None:
            if not _have_one_end(line, following):
                return
            line.close()
            line, waited = following, 0.0


def _have_one_end(line: socket.socket, following: socket.socket) -> bool:
    """Whether both go to the same address. A lost node closes no connection, and a new chief has another address."""
    try:
        return bool(line.getpeername() == following.getpeername())
    except OSError:  # one of them is closed
        return False


def _is_closed(line: socket.socket) -> bool:
    """Whether the other end has closed the connection; reads what it says."""
    line.setblocking(False)
    try:
        while line.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
