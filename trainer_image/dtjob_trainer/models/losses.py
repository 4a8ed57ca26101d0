"""A replica's share of the loss: over all replicas the shares sum up to the loss that one device has of the batch.

Keras divides by what its own replica holds (examples, valid mask entries, weights) and by the number of replicas: a
mean of means, which unequal shares, masks and weights make differ from one device's mean. Here each divisor is that of
the global batch, and those that only the replicas know together are summed over them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from keras.src.losses import loss as keras_loss

from dtjob_trainer.errors import LossError

_own_reduction = keras_loss.reduce_weighted_values
_own_scale = keras_loss.scale_loss_for_distribution
_own_unscale = keras_loss.unscale_loss_for_distribution

NO_SCALAR = "compile(): a loss with reduction None has a value for each example; use sum_over_batch_size"


@dataclass(frozen=True)
class Cut:
    """How a replica's rows stand to the global batch."""

    replicas: int
    """Replicas that share the batch."""
    examples: Any
    """Rows of this replica that count (int32): 0 where it stands in with a row of no weight."""
    total: Any
    """Examples of the global batch (int32)."""
    may_be_empty: bool
    """Whether `examples` may be 0 at some step."""
    alone: bool = False
    """Whether a loss is to be what this replica alone would say: the mean of that, weighed by rows, is one device's."""

    def mean(self, value: Any) -> Any:
        """The share of `value`, a mean over this replica's rows, in the mean over the global batch."""
        return value * tf.cast(self.examples, value.dtype) / tf.cast(self.total, value.dtype)

    def spoken(self, share: Any) -> Any:
        """What a loss with this `share` is to be."""
        if not self.alone:
            return share
        total, examples = tf.cast(self.total, share.dtype), tf.cast(self.examples, share.dtype)
        return share * tf.math.divide_no_nan(total, examples)

    def counted(self, value: Any) -> Any:
        """`value`, or zero where this replica's row only stands in."""
        return value * tf.cast(self.examples > 0, value.dtype) if self.may_be_empty else value

    def sum(self, value: Any) -> Any:
        """The sum of `value` over all replicas."""
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.stop_gradient(self.counted(value)))


current_cut: ContextVar[Cut | None] = ContextVar("cut", default=None)
"""The cut of the replica whose loss is being traced; each replica is traced in a thread of its own."""
unscaled: ContextVar[bool] = ContextVar("unscaled", default=False)
"""Whether losses are to be those of this replica's rows alone, scaled by nobody."""


def share_of(model: Any, cut: Cut, **arguments: Any) -> Any:
    """This replica's share (scalar) of `model`'s loss of the global batch; `arguments` are those of `compute_loss`.

    A model with a `compute_loss` of its own and scalar losses are taken as means over examples, as nobody can know
    better. Raises LossError for a loss that is no scalar.
    """
    if cut.replicas == 1:
        value = model._compute_loss(**arguments)
        if value.shape.rank != 0:
            raise LossError(NO_SCALAR)
        return value
    if type(model).compute_loss is not keras.Model.compute_loss:
        with setting(unscaled, True):
            return cut.mean(model._compute_loss(**arguments))
    with setting(current_cut, cut):
        return model._compute_loss(**arguments)


def of_global_batch() -> AbstractContextManager[None]:
    """While this lasts, Keras's losses are as `share_of` needs them; elsewhere they stay what they are."""
    return replaced(
        keras_loss,
        reduce_weighted_values=_reduce,
        scale_loss_for_distribution=_scale,
        unscale_loss_for_distribution=_unscale,
    )


def _reduce(
    values: Any, sample_weight: Any = None, mask: Any = None, reduction: Any = "sum_over_batch_size", dtype: Any = None
) -> Any:
    """As Keras's `reduce_weighted_values`, with the divisors of the global batch."""
    cut = current_cut.get()
    if cut is None or (cut.alone and reduction in (None, "none")):
        return _own_reduction(values, sample_weight, mask, reduction, dtype)
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
    weights = keras_loss.apply_mask(sample_weight, mask, dtype=values.dtype, reduction="sum")
    if weights is not None:
        weights = keras.ops.cast(weights, values.dtype)
        values, weights = keras_loss.squeeze_or_expand_to_same_rank(values, weights)
        values = values * weights
    if values.shape.rank == 0:
        return cut.mean(values)
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


def _scale(value: Any) -> Any:
    """Keras's scaling of what is added to a loss (`add_loss`, regularisers)."""
    cut = current_cut.get()
    if cut is not None:
        return value if cut.alone else cut.mean(value)
    return value if unscaled.get() else _own_scale(value)


def _unscale(value: Any) -> Any:
    """Keras's way back from a scaled loss to the one that it tracks for each output, once for each replica."""
    cut = current_cut.get()
    return value if unscaled.get() or (cut is not None and cut.alone) else _own_unscale(value)


def weighed(cut: Cut, gradients: Sequence[Any]) -> list[Any]:
    """Gradients of what this replica alone would say, each times the replica's part of the global batch's rows."""

    def weigh(gradient: Any) -> Any:
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(cut.mean(gradient.values), gradient.indices, gradient.dense_shape)
        return None if gradient is None else cut.mean(gradient)

    return [weigh(gradient) for gradient in gradients]


@contextlib.contextmanager
def setting(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """While this lasts, `variable` is `value` in this thread."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextlib.contextmanager
def replaced(module: Any, **functions: Callable[..., Any]) -> Iterator[None]:
    """While this lasts, `module`'s functions of these names are `functions`."""
    own = {name: getattr(module, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(module, name, function)
        yield
    finally:
        for name, function in own.items():
            setattr(module, name, function)
