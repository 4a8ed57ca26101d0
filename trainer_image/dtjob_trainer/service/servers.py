# SPDX-License-Identifier: Apache-2.0
"""The servers of tf.data service: the dispatcher in the chief task's training process, a worker in each data worker.

The dispatcher lives and ends with the training that needs it, so it keeps no journal. A data worker begins anew with
each dispatcher.
"""

import sys
import time
from typing import Any, NoReturn

from dtjob_trainer.contract import log_line
from dtjob_trainer.contract.task import Task, port_of
from dtjob_trainer.errors import TaskError
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.process.serving import listens

HEARTBEAT_MS = 1000
"""How often a data worker asks the dispatcher for tasks."""
LOOK_SECONDS = 1.0
"""How often a data worker speaks to the dispatcher, and data-0 looks for the others."""
POLL_SECONDS = 0.2
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
    """Make examples for the training until SIGTERM, which ends the process."""
    import tensorflow as tf

    from dtjob_trainer.service.dispatcher import Dispatcher

    service = tf.data.experimental.service
    address, own = task.data_service, task.data_address
    config = service.WorkerConfig(address, own, port_of(own), "grpc", heartbeat_interval_ms=HEARTBEAT_MS)
    log_line.write(sys.stdout, f"waits for the chief task at {address}", task=task.id)
    while True:
        while not listens(address, seconds=5.0):  # gRPC would look for the name again after 120 s
            time.sleep(POLL_SECONDS)
        dispatcher = Dispatcher(address)
        server = service.WorkerServer(config)
        here.progress.report(state="serving")
        log_line.write(sys.stdout, f"makes examples for the chief task at {address}", task=task.id)
        while not dispatcher.ended.wait(LOOK_SECONDS):
            if task.index == 0:
                dispatcher.end_tasks_of_lost(own)
            else:
                dispatcher.greet()
        del server  # which stops it
