# SPDX-License-Identifier: Apache-2.0
"""`predict` and `predict_on_batch` of Keras's models under a strategy of several replicas."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.strategies.ambient import outside_strategy

STRATEGY = ("_distribute_strategy", "_distribution_strategy")
"""The attribute in which a model of Keras 3 or tf_keras has its strategy."""


def on_one_device(traits: Traits, replicas: int) -> bool:
    """Whether models predict on one device of the task that calls, under a strategy like that with so many `replicas`.

    - In a group, Keras waits at each batch for all other tasks, or fails inside TensorFlow. A call by the chief alone
      would never return.
    - On several CPUs, Keras fails with fewer rows than replicas: there a convolution of no rows has a wrong shape.
    """
    if traits.asynchronous or traits.collective:
        return True
    return replicas > 1 and not traits.tpu and not tf.config.list_logical_devices("GPU")


def replace(model: Any, traits: Traits, replicas: int) -> None:
    """Have models of the class `model` predict on one device, or a batch as `predict` does.

    Keras 3's own `predict_on_batch` gives the whole batch to each replica, and returns the rows of all replicas.
    """
    if on_one_device(traits, replicas):
        model.predict = _here(model.predict)
        model.predict_on_batch = _here(model.predict_on_batch)
    elif replicas > 1:
        model.predict_on_batch = _by_predict(model.predict_on_batch)


def _here(predict: Callable[..., Any]) -> Callable[..., Any]:
    """The method `predict`, on the device of this process."""

    @functools.wraps(predict)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = {name: vars(self)[name] for name in STRATEGY if name in vars(self)}
        vars(self).update(dict.fromkeys(held))
        try:
            return outside_strategy(predict)(self, *args, **kwargs)
        finally:
            vars(self).update(held)

    return method


def _by_predict(predict_on_batch: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(predict_on_batch)
    def method(self: Any, x: Any) -> Any:
        return self.predict(x, batch_size=len(keras.tree.flatten(x)[0]), verbose=0)

    return method
