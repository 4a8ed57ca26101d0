"""Tasks that only serve: ps and ParameterServer's workers run a TensorFlow server until they are told to end."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, NoReturn

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.task import Task
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.process.shutdown import MARGIN_SECONDS

THREADS = 4
"""Fewest inter-op threads of a server: with TensorFlow's default, few on small machines, waiting functions deadlock."""
POLL_SECONDS = 0.1
WORKER_SECONDS = 10.0
"""How long a worker that got SIGTERM serves on: a chief that got it too can end the steps in flight, and save."""


def serve(here: Runtime, task: Task) -> NoReturn:
    """Serve until SIGTERM, and then on for as long as the chief may need this task to save.

    A worker gives it the time to end the steps in flight, a ps all of the grace period; both end when the chief has.

    TensorFlow's own Server.join() never returns, and would keep SIGTERM from being noticed.
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
    while time.monotonic() < deadline and _listens(task.cluster["chief"][0]):
        time.sleep(POLL_SECONDS)
    del server
    os._exit(exit_codes.TERMINATED)


def settings_of(task: Task) -> Any:
    """The server's `ConfigProto`: it knows nothing of what `configure_devices` has set."""
    import tensorflow as tf

    settings = tf.compat.v1.ConfigProto()
    settings.inter_op_parallelism_threads = max(THREADS, len(task.members))
    settings.gpu_options.allow_growth = True
    if task.role == "ps":
        settings.device_count["GPU"] = 0
    return settings


def _listens(address: str) -> bool:
    """Whether anybody accepts connections at `address`; a bare connect does not disturb TensorFlow."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=POLL_SECONDS):
            return True
    except OSError:
        return False
