# SPDX-License-Identifier: Apache-2.0
"""Keras 3's losses in a replica's step: computed as on one device, and scaled by nobody."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import keras

from dtjob_trainer.errors import LossError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.models import average_loss
from dtjob_trainer.placement import layers, tracker
from dtjob_trainer.placement.cuts import unscaled

NO_SCALAR = "compile(): a loss with reduction None has a value for each example; use sum_over_batch_size"


def of_model(model: Any, **arguments: Any) -> Any:
    """`model`'s loss (scalar) of the batch; `arguments` are those of `compute_loss`.

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
        hooks.during(keras3.LOSS_SCALED, lambda own: hooks.noted(keras3.LOSS_SCALED, partial(_scaled, own))),
        hooks.during(keras3.LOSS_UNSCALED, lambda own: partial(_scaled, own)),
        layers.by_rows(keras.Layer, "keras"),
        average_loss.of_one_device(),
    ):
        yield


def _scaled(own: Callable[..., Any], value: Any) -> Any:
    """Keras's division of a loss by the number of replicas, and its way back."""
    return value if tracker.current() is not None or unscaled.get() else own(value)
