# SPDX-License-Identifier: Apache-2.0
"""A replica's share of the loss: over all replicas the shares sum up to the loss that one device has of the batch.

Keras divides by what its own replica holds (examples, valid mask entries, weights) and by the number of replicas: a
mean of means, which unequal shares, masks and weights make differ from one device's mean. Here each divisor is that of
the global batch, and those that only the replicas know together are summed over them.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.errors import LossError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.models.by_rows import average_loss, layers, objects, scalars
from dtjob_trainer.models.cuts import Cut, current_cut, setting, unscaled

NO_SCALAR = "compile(): a loss with reduction None has a value for each example; use sum_over_batch_size"


def share_of(model: Any, cut: Cut, **arguments: Any) -> Any:
    """This replica's share (scalar) of `model`'s loss of the global batch; `arguments` are those of `compute_loss`.

    Raises LossError for a loss that is no scalar.
    """
    compute_loss = keras3.loss_function(model)
    if cut.replicas == 1:
        value = compute_loss(**arguments)
        if value.shape.rank != 0:
            raise LossError(NO_SCALAR)
        return value
    if type(model).compute_loss is not keras.Model.compute_loss:
        with setting(current_cut, cut.by_itself):
            value = compute_loss(**arguments)
        return scalars.share(value, cut)
    compares = any(target is not None for target in keras.tree.flatten(arguments["y"]))
    reduces = compares and keras3.reduces_losses(model)
    with setting(current_cut, cut), hooks.expected(keras3.LOSS_REDUCED, reduces):
        return compute_loss(**arguments)


@contextlib.contextmanager
def of_global_batch() -> Iterator[None]:
    """While this lasts, Keras's losses are as `share_of` needs them; elsewhere they stay what they are."""
    with (
        hooks.during(keras3.LOSS_REDUCED, lambda own: hooks.noted(keras3.LOSS_REDUCED, partial(_reduce, own))),
        hooks.during(keras3.LOSS_SCALED, lambda own: partial(_scale, own)),
        hooks.during(keras3.LOSS_UNSCALED, lambda own: partial(_unscale, own)),
        objects.heard(keras.losses.Loss, "keras"),
        layers.noted(keras.Layer),
        average_loss.of_one_device(),
    ):
        yield


def _reduce(
    own: Callable[..., Any],
    values: Any,
    sample_weight: Any = None,
    mask: Any = None,
    reduction: Any = "sum_over_batch_size",
    dtype: Any = None,
) -> Any:
    """As Keras's `reduce_weighted_values`, with the divisors of the global batch."""
    cut = current_cut.get() or objects.cut_of(values)
    if cut is None or (cut.alone and reduction in (None, "none")):
        return own(values, sample_weight, mask, reduction, dtype)
    return cut.spoken(_reduced_share(cut, values, sample_weight, mask, reduction, dtype))


def _reduced_share(cut: Cut, values: Any, sample_weight: Any, mask: Any, reduction: Any, dtype: Any) -> Any:
    """The share of one loss in that of the global batch."""
    if reduction in (None, "none"):
        raise LossError(NO_SCALAR)
    values = keras.ops.convert_to_tensor(values, dtype=dtype)
    if sample_weight is not None:
        sample_weight = keras.ops.convert_to_tensor(sample_weight, dtype=dtype)
    if mask is not None:
        mask = keras.ops.convert_to_tensor(mask, dtype=dtype)
    weights = keras3.weights_of_mask(sample_weight, mask, values.dtype)
    if weights is not None:
        weights = keras.ops.cast(weights, values.dtype)
        values, weights = keras3.of_one_rank(values, weights)
        values = values * weights
    summed = tf.reduce_sum(values)
    if reduction == "sum":
        return cut.counted(summed)
    if reduction == "mean_with_sample_weight" and weights is not None:
        return tf.math.divide_no_nan(cut.counted(summed), cut.sum(tf.reduce_sum(weights)))
    if mask is not None and reduction != "mean_with_sample_weight":
        entries = tf.cast(tf.size(mask), values.dtype) / tf.cast(tf.size(values), values.dtype)
        valid = cut.sum(tf.reduce_sum(tf.cast(tf.cast(mask, tf.bool), values.dtype)))
        return tf.math.divide_no_nan(cut.counted(summed) * entries, valid)
    return cut.mean(summed / tf.cast(tf.size(values), values.dtype))


def _scale(own: Callable[[Any], Any], value: Any) -> Any:
    """Keras's scaling of what is added to a loss (`add_loss`, regularisers)."""
    cut = current_cut.get()
    if cut is not None:
        return value if cut.alone else scalars.share(value, cut)
    return value if unscaled.get() else own(value)


def _unscale(own: Callable[[Any], Any], value: Any) -> Any:
    """Keras's way back from a scaled loss to the one that it tracks for each output, once for each replica."""
    cut = current_cut.get()
    return value if unscaled.get() or (cut is not None and cut.alone) else own(value)
