# SPDX-License-Identifier: Apache-2.0
"""Loops of a program's own under ParameterServer that have no `ClusterCoordinator`.

TensorFlow runs steps on workers through a coordinator. A loop that calls `strategy.run` by itself, as under all other
strategies, runs in the chief.
"""

import functools
from collections.abc import Callable
from typing import Any

from dtjob_trainer.frameworks import hooks, tensorflow
from dtjob_trainer.process.runtime import Runtime

IN_CHIEF = (
    "this loop runs in the chief alone, as ParameterServer gives workers the steps of ClusterCoordinator.schedule(…); "
    "train with Model.fit or dtjob_trainer.train(…), or set spec.strategy to MultiWorkerMirrored, to use all tasks"
)


def iterate_in_chief(here: Runtime) -> None:
    """Have data of `experimental_distribute_dataset` and its like be there in this process too.

    TensorFlow leaves it to `ClusterCoordinator.create_per_worker_dataset` to build such data, for the workers alone.
    """
    warn = functools.cache(here.warn)
    hooks.put(tensorflow.CHIEFS_DATA, _building, on=here.strategy.extended)
    hooks.put(tensorflow.CHIEFS_DATA_BUILT, _building_again)
    hooks.put(tensorflow.CHIEFS_DATA_READ, lambda iterate: _telling(iterate, warn))


def _building(distribute: Callable[..., Any]) -> Callable[..., Any]:
    """The method `distribute`, whose data is ready for this process."""

    def method(*args: Any, **kwargs: Any) -> Any:
        data = distribute(*args, **kwargs)
        tensorflow.build_data(data)
        return data

    return method


def _building_again(build: Callable[..., None]) -> Callable[..., None]:
    """The method `build`, which the coordinator may call of data that is ready for this process."""

    def method(self: Any, *args: Any, **kwargs: Any) -> None:
        tensorflow.build_data_again(self)
        build(self, *args, **kwargs)

    return method


def _telling(iterate: Callable[[Any], Any], warn: Callable[[str], None]) -> Callable[[Any], Any]:
    """The method `iterate`, which says that this process alone trains. In a function it may be a worker's."""
    import tensorflow as tf

    def method(self: Any) -> Any:
        if not tf.inside_function():
            warn(IN_CHIEF)
        return iterate(self)

    return method
