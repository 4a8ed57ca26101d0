# SPDX-License-Identifier: Apache-2.0
"""The servers of tf.data service: the dispatcher in the chief task's training process, a worker in each data worker.

The dispatcher lives and ends with the training that needs it, so it keeps no journal. A new dispatcher counts its tasks
from the beginning. A data worker that had tasks of the old one could take the new ones for these. So it watches the
dispatcher's process by an open connection, and begins anew when that ends.
"""

import contextlib
import os
import select
import socket
from collections.abc import Mapping
from typing import Any, NoReturn

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.task import Task, host_of
from dtjob_trainer.errors import TaskError
from dtjob_trainer.process.runtime import Runtime

ADDRESS = "DTJOB_DATA_SERVICE"
"""The variable with the dispatcher's address, `grpc://host:port`. Not set in a job without data workers."""
HEARTBEAT_MS = 1000
"""How often a data worker asks the dispatcher for tasks."""
POLL_SECONDS = 0.2
RENEW_SECONDS = 20.0
"""A connection is replaced after so long. The dispatcher closes one on which nobody says anything after 120 s."""
CONNECT_SECONDS = 5.0
_dispatchers: list[Any] = []


def dispatch(environ: Mapping[str, str]) -> None:
    """Run the dispatcher in this process from now on. Raises TaskError if its port is taken."""
    import tensorflow as tf

    service = tf.data.experimental.service
    port = int(environ[ADDRESS].rpartition(":")[2])
    try:
        _dispatchers.append(service.DispatchServer(service.DispatcherConfig(port=port, protocol="grpc")))
    except (tf.errors.OpError, RuntimeError) as error:
        raise TaskError(f"network.dataPort {port} cannot be listened on: {error}") from None


def serve(here: Runtime, task: Task) -> NoReturn:
    """Make examples for the training until SIGTERM."""
    import tensorflow as tf

    service = tf.data.experimental.service
    dispatcher, own = (os.environ[name].rpartition("//")[2] for name in (ADDRESS, "DTJOB_DATA_ADDRESS"))
    port = int(own.rpartition(":")[2])
    here.shutdown.training_begins()
    while not here.shutdown.signalled:
        if (line := _connect(dispatcher)) is None:
            here.shutdown.wait_signalled(POLL_SECONDS)
            continue
        config = service.WorkerConfig(dispatcher, own, port, "grpc", heartbeat_interval_ms=HEARTBEAT_MS)
        server = service.WorkerServer(config)
        here.progress.report(state="serving")
        _watch(here, dispatcher, line)
        del server  # which stops it
    os._exit(exit_codes.TERMINATED)


def _watch(here: Runtime, dispatcher: str, line: socket.socket) -> None:
    """Return when the process of the dispatcher has ended, or this task got SIGTERM."""
    waited = 0.0
    while not here.shutdown.wait_signalled(POLL_SECONDS):
        if _is_closed(line):
            return
        waited += POLL_SECONDS
        if waited >= RENEW_SECONDS:
            following, waited = _connect(dispatcher), 0.0
            if following is None or _is_closed(line):
                return
            line.close()
            line = following


def _is_closed(line: socket.socket) -> bool:
    """Whether the other end has closed the connection; reads what it says."""
    while select.select([line], [], [], 0)[0]:
        try:
            if not line.recv(4096):
                return True
        except OSError:
            return True
    return False


def _connect(address: str) -> socket.socket | None:
    """A connection to `host:port`; None if nobody listens."""
    with contextlib.suppress(OSError):
        return socket.create_connection((host_of(address), int(address.rpartition(":")[2])), CONNECT_SECONDS)
    return None
