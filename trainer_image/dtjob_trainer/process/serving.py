# SPDX-License-Identifier: Apache-2.0
"""Tasks that only serve: ps and workers of ParameterServer. They run a TensorFlow server until they are told to end."""

import os
import socket
import time
from typing import Any, NoReturn

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.task import Task, host_of, port_of
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.process.shutdown import MARGIN_SECONDS

THREADS = 4
"""Least inter-op threads of a server. TensorFlow's default is too low on small machines: waiting functions deadlock."""
POLL_SECONDS = 0.1
WORKER_SECONDS = 10.0
"""A worker that got SIGTERM serves for so long. A chief that got it too can end its running steps, and save."""


def serve(here: Runtime, task: Task) -> NoReturn:
    """Serve until SIGTERM, and then for as long as the chief may need this task to save.

    A worker gives the chief the time to end its running steps. A ps gives it the whole grace period. Both end when the
    chief has ended.

    TensorFlow's own Server.join() is not used: it never returns, and SIGTERM would not be noticed.
    """
    import tensorflow as tf

    from dtjob_trainer.strategies import create

    create.see_gpus(task.gpus, here.log)
    create.configure_devices({})
    config = task.tf_config()
    assert config is not None
    server = tf.distribute.Server(
        tf.train.ClusterSpec(config["cluster"]),
        job_name=task.role,
        task_index=task.index,
        protocol="grpc",
        config=settings_of(task),
        start=True,
    )
    here.shutdown.training_begins()
    here.progress.report(state="serving")
    here.shutdown.wait_signalled()
    serve_on = task.grace_seconds - 2 * MARGIN_SECONDS
    deadline = time.monotonic() + (serve_on if task.role == "ps" else min(serve_on, WORKER_SECONDS))
    while time.monotonic() < deadline and listens(task.cluster["chief"][0]):
        time.sleep(POLL_SECONDS)
    del server
    os._exit(exit_codes.TERMINATED)


def settings_of(task: Task) -> Any:
    """The server's `ConfigProto`. A server does not use what `configure_devices` has set."""
    import tensorflow as tf

    settings = tf.compat.v1.ConfigProto()
    settings.inter_op_parallelism_threads = max(THREADS, len(task.members))
    settings.gpu_options.allow_growth = True
    if task.role == "ps":
        settings.device_count["GPU"] = 0
    return settings


def listens(address: str, seconds: float = POLL_SECONDS) -> bool:
    """Whether `address` accepts connections. A connection without data does not disturb TensorFlow."""
    try:
        with socket.create_connection((host_of(address), port_of(address)), timeout=seconds):
            return True
    except OSError:
        return False
