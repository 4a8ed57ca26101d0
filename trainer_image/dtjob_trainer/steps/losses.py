# SPDX-License-Identifier: Apache-2.0
"""Losses in a replica's step: computed as on one device, and scaled by nobody."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras

from dtjob_trainer.errors import LossError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.frameworks.tensorflow import AVERAGES
from dtjob_trainer.placement import layers, shard, tracker

NO_SCALAR = "compile(): a loss with reduction None has a value for each example; use sum_over_batch_size"


def of_model(model: Any, **arguments: Any) -> Any:
    """The loss (scalar) of a batch, of a Keras 3 `model`; `arguments` are those of `compute_loss`.

    Raises LossError for a loss that is no scalar.
    """
    compares = any(target is not None for target in keras.tree.flatten(arguments["y"]))
    own = type(model).compute_loss is not keras.Model.compute_loss
    scales = tracker.current() is not None and compares and not own and keras3.scales_losses(model)
    with hooks.expected(keras3.LOSS_SCALED, scales):
        value = keras3.loss_function(model)(**arguments)
    if value.shape.rank != 0:
        raise LossError(NO_SCALAR)
    return value


@contextlib.contextmanager
def of_global_batch() -> Iterator[None]:
    """While this lasts, Keras's losses in a replica's step are one device's; elsewhere they stay what they are."""
    with (
        hooks.during(keras3.LOSS_SCALED, hooks.around(hooks.noted(keras3.LOSS_SCALED, unscaled))),
        hooks.during(keras3.LOSS_UNSCALED, hooks.around(unscaled)),
        layers.by_rows(keras.Layer, "keras"),
        averages_of_one_device(),
    ):
        yield


def are_one_devices() -> bool:
    """Whether losses are computed as on one device: where replicas share a step, or while a model is built."""
    return tracker.current() is not None or shard.building.get()


def unscaled(own: Callable[[Any], Any], value: Any) -> Any:
    """A package's division of a loss by the number of replicas, or its way back."""
    return value if are_one_devices() else own(value)


def averages_of_one_device() -> contextlib.AbstractContextManager[None]:
    """While this lasts, `tf.nn.compute_average_loss` and `tf.nn.scale_regularization_loss` are as on one device.

    TensorFlow divides by the number of replicas, so that the sum over replicas is right. In a replica's step losses
    are one device's already.
    """
    return hooks.during(AVERAGES, OneDevice)


class OneDevice:
    """TensorFlow's module `distribute_lib`, or `tensorflow` itself, where a loss is computed as on one device."""

    num_replicas_in_sync = 1

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    @property
    def distribute(self) -> Any:
        """The module `tf.distribute`."""
        return OneDevice(self._own.distribute)

    def get_strategy(self) -> Any:
        """The strategy, or what says that there is one replica."""
        return self if are_one_devices() else self._own.get_strategy()

    def in_cross_replica_context(self) -> bool:
        """Whether this is outside a replica's step, where TensorFlow refuses to average."""
        return not are_one_devices() and self._own.in_cross_replica_context()
