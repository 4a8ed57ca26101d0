# SPDX-License-Identifier: Apache-2.0
"""Waits until the workers of ParameterServer reach the parameter servers.

A worker that has lost a server does not connect again for a second or more: gRPC's backoff. Until then it says at once
that the server is away, also if the server is back. TensorFlow asks three times without a pause, and gives up. The
chief would restart a second time.
"""

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

PATIENCE_SECONDS = 10.0
"""How long the chief waits. Afterwards TensorFlow says which server is away."""
_PAUSE_SECONDS = 0.05


def wait_for_servers(workers: int, servers: int, patience: float = PATIENCE_SECONDS) -> bool:
    """Return once each of `workers` has reached all `servers`; False if one does not within `patience` (s).

    A worker that is away itself is not waited for: training begins without it.
    """
    names = [f"/job:ps/replica:0/task:{server}/device:CPU:0" for server in range(servers)]

    @tf.function  # type: ignore[untyped-decorator]
    def ask() -> Any:
        numbers = []
        for name in names:
            with tf.device(name):
                numbers.append(tf.timestamp())  # which TensorFlow computes there, each time
        return tf.add_n(numbers)

    until = time.monotonic() + patience
    return all(_reaches(ask, f"/job:worker/replica:0/task:{worker}", until) for worker in range(workers))


def _reaches(ask: Callable[[], Any], worker: str, until: float) -> bool:
    while True:
        try:
            with tf.device(worker):
                ask().numpy()
            return True
        except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
            if "/job:ps/" not in str(error):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_SECONDS)
