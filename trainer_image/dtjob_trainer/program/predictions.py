# SPDX-License-Identifier: Apache-2.0
"""`predict` and `predict_on_batch` of Keras's models under a strategy of several replicas."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks.keras3 import without_strategy
from dtjob_trainer.strategies.ambient import outside_strategy


def on_one_device(traits: Traits, replicas: int) -> bool:
    """Whether models predict on one device of the task that calls, under a strategy with so many `replicas`.

    - In a group, Keras waits at each batch for all other tasks, or fails inside TensorFlow. A call by the chief alone
      would never return.
    - On several CPUs, Keras fails with fewer rows than replicas: there a convolution of no rows has a wrong shape.
    """
    if traits.asynchronous or traits.collective:
        return True
    return replicas > 1 and not traits.tpu and not tf.config.list_logical_devices("GPU")


def replace(predict: hooks.Hook, on_batch: hooks.Hook, traits: Traits, replicas: int) -> None:
    """Have models of a package predict on one device, or a batch as `predict` does.

    Keras 3's own `predict_on_batch` gives the whole batch to each replica, and returns the rows of all replicas.
    """
    if on_one_device(traits, replicas):
        hooks.put(predict, _here)
        hooks.put(on_batch, _here)
    elif replicas > 1:
        hooks.put(on_batch, _by_predict)


def _here(predict: Callable[..., Any]) -> Callable[..., Any]:
    """The method `predict`, on the device of this process."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        with without_strategy(self):
            return outside_strategy(predict)(self, *args, **kwargs)

    return method


def _by_predict(predict_on_batch: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, x: Any) -> Any:
        return self.predict(x, batch_size=len(keras.tree.flatten(x)[0]), verbose=0)

    return method
