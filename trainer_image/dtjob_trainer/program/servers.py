# SPDX-License-Identifier: Apache-2.0
"""`tf.distribute.Server` and `ClusterCoordinator` in a program whose job has no servers.

A script for ParameterServer starts a server in tasks that TF_CONFIG calls worker, and waits in `join()`, which never
returns. Under other strategies these tasks are to train.
"""

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import NoServerError
from dtjob_trainer.frameworks import hooks, tensorflow
from dtjob_trainer.process.runtime import Runtime


def start_none(here: Runtime, task: Task) -> None:
    """Have `Server` of the cluster in TF_CONFIG start nothing, and its `join()` return. Others are TensorFlow's."""

    def make(cls: Any, server_or_cluster_def: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_of_the_job(server_or_cluster_def):
            return NoServer(here, task)
        return object.__new__(cls)

    hooks.put(tensorflow.SERVER, partial(_making, make))


def refuse_coordinators(task: Task) -> None:
    """Have `ClusterCoordinator` raise NoServerError: there is nothing that it could give steps to."""

    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        raise NoServerError(
            f"ClusterCoordinator needs servers, but under {task.strategy} there are none; set spec.strategy to "
            "ParameterServer, or train with Model.fit, dtjob_trainer.train(…) or strategy.run(step, …)"
        )

    hooks.put(tensorflow.CLUSTER_COORDINATOR, partial(_making, make))


def _making(make: Callable[..., Any], original: Any) -> type:
    """A class like `original` whose objects `make` makes."""
    attributes = {"__doc__": original.__doc__, "__module__": original.__module__, "__new__": make}
    return type(original.__name__, (original,), attributes)


class NoServer:
    """What a program has in place of a server that the job does not need."""

    target = ""

    def __init__(self, here: Runtime, task: Task) -> None:
        self._here, self._task = here, task

    def start(self) -> None:
        """Nothing starts."""

    def join(self) -> None:
        """Return, and log that this task trains."""
        self._here.joined_server = True
        self._here.log(f"Server.join() returns, because every task trains under {self._task.strategy}")


def refuse_to_wait(here: Runtime) -> None:
    """Raise NoServerError at the end of a program that has left training to others, of which there are none."""
    if here.task is None or not here.joined_server or here.began or here.progress.status.get("trainsItself"):
        return
    raise NoServerError(
        f"the program called Server.join() and trained nothing, but under {here.task.strategy} there are no servers; "
        "set spec.strategy to ParameterServer, or call join() only if TF_CONFIG has ps tasks"
    )


def _is_of_the_job(server_or_cluster_def: Any) -> bool:
    """Whether a server of that cluster would be one of the cluster that TF_CONFIG names."""
    import tensorflow as tf

    cluster = getattr(server_or_cluster_def, "cluster", server_or_cluster_def)
    addresses = {address for each in tf.train.ClusterSpec(cluster).as_dict().values() for address in _listed(each)}
    ours = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    return any(address in addresses for each in ours.values() for address in each)


def _listed(tasks: Any) -> Any:
    """The addresses of a role, which ClusterSpec has as a list, or by index if some are missing."""
    return tasks.values() if isinstance(tasks, dict) else tasks
