# SPDX-License-Identifier: Apache-2.0
"""The task at which a group's TensorFlow processes meet: the others ask for it only once it listens.

All are let go at the same moment. Whoever asks before the leader listens is refused, and TensorFlow's gRPC asks again
after a second, for which the whole group waits: that was seen at one restart of eleven, on two busy cores.
"""

import contextlib
import socket
import time

from dtjob_trainer.contract.task import Task

PATIENCE_SECONDS = 10.0
"""After which TensorFlow itself waits for it, as it does for an hour, and names who is missing."""
ASK_AGAIN_SECONDS = (0.02, 0.5)
"""At least and at most: a quarter of the time waited so far, so that a thousand workers are no storm of look-ups."""
CONNECT_SECONDS = 1.0
"""After which the name is looked up anew: the leader may have moved."""


def wait_for_leader(task: Task, patience: float = PATIENCE_SECONDS) -> bool:
    """Return once the leader of `task`'s group listens on TensorFlow's port; False where it did not for so long.

    At once at the leader itself. A connection that says nothing does TensorFlow's server no harm.
    """
    if task.is_chief:
        return True
    host, _, port = task.cluster["chief" if task.cluster.get("chief") else "worker"][0].rpartition(":")
    began = time.monotonic()
    while (waited := time.monotonic() - began) < patience:
        with contextlib.suppress(OSError):  # also a name that does not resolve yet
            socket.create_connection((host.strip("[]"), int(port)), min(CONNECT_SECONDS, patience - waited)).close()
            return True
        least, most = ASK_AGAIN_SECONDS
        time.sleep(min(most, max(least, waited / 4)))
    return False
