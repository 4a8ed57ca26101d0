# SPDX-License-Identifier: Apache-2.0
"""The parameter servers of a job, and work that each of them does beside the others."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from dtjob_trainer.contract.task import Task


def devices_of(task: Task) -> tuple[str, ...]:
    """The device of each parameter server of a job whose chief is `task`; none under other strategies."""
    servers = task.cluster.get("ps", ()) if task.traits.asynchronous else ()
    return tuple(f"/job:ps/replica:0/task:{number}/device:CPU:0" for number in range(len(servers)))


def side_by_side(calls: Iterable[Callable[[], Any]]) -> None:
    """Make all calls, each in a thread of its own, and wait until they have ended. Raises the first error.

    The threads are daemons: Python would wait at its end for those that a server leaves without an answer.
    """
    errors: list[BaseException] = []

    def make(call: Callable[[], Any]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make, args=(call,), name="server", daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
