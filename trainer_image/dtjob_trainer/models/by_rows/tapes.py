# SPDX-License-Identifier: Apache-2.0
"""Gradients that a `train_step` of the model's own takes of its loss, as those of one device's loss.

Such a step computes its loss of the replica's rows, and its gradients are weighted by these rows before they are
summed. This is right for a mean over rows. Here the gradients of a sum, and of what is neither, are made right too.
"""

from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.models.by_rows import gradient_functions, scalars
from dtjob_trainer.models.by_rows.slices import Slice, key_of
from dtjob_trainer.models.cuts import Cut, current_cut


def heard() -> AbstractContextManager[None]:
    """While this lasts, gradients of a replica's loss by variables are as above."""
    return gradient_functions.heard(_hearing)


def _hearing(own: gradient_functions.Gradient) -> gradient_functions.Gradient:
    def gradient(target: Any, sources: Any, output_gradients: Any = None, *args: Any, **kwargs: Any) -> Any:
        cut, traced = current_cut.get(), scalars.current()

        def take(target: Any, output_gradients: Any) -> Any:
            return own(target, sources, output_gradients, *args, **kwargs)

        ours = cut is not None and cut.alone and traced is not None and output_gradients is None
        targets = tf.nest.flatten(target)
        if not ours or not all(map(_is_loss, targets)) or not _are_variables(sources):
            return take(target, output_gradients)
        assert cut is not None
        assert traced is not None
        loss = _as_one(targets)
        part, kind = scalars.seen(loss)
        spoken, found = loss, None
        if kind == "sum":
            spoken = scalars.summed(loss, cut)
            factor = tf.cast(cut.total, loss.dtype) / tf.cast(tf.maximum(cut.examples, 1), loss.dtype)
            factor = cut.counted(factor)
            found = take(targets, [tf.fill(tf.shape(each), tf.cast(factor, each.dtype)) for each in targets])
        elif kind == "neither" and part is not None:
            spoken, tensors, gradients = _of_all_rows(part, cut)
            found = take(tensors, gradients)
        else:
            found = take(target, None)
        if loss is target:
            traced.spoken[key_of(target)] = spoken
        return found

    return gradient


def _of_all_rows(part: Slice, cut: Cut) -> tuple[Any, list[Any], list[Any]]:
    """The loss of all rows, the replica's own tensors that it depends on, and its gradients by these."""
    tensors = [source.tensor for source in part.sources if source.tensor.dtype.is_floating]
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(tensors)
        loss = scalars.whole(part, cut)
    pairs = zip(tensors, tape.gradient(loss, tensors), strict=True)
    known = [(tensor, tf.convert_to_tensor(gradient)) for tensor, gradient in pairs if gradient is not None]
    return loss, [tensor for tensor, _ in known], [gradient for _, gradient in known]


def _as_one(targets: list[Any]) -> Any:
    """The loss that the tape takes `targets` for: the sum of all their values."""
    if len(targets) == 1 and targets[0].shape.rank == 0:
        return targets[0]
    return tf.add_n([tf.reduce_sum(tf.cast(each, targets[0].dtype)) for each in targets])


def _is_loss(target: Any) -> bool:
    return isinstance(target, tf.Tensor) and hasattr(target, "op") and target.dtype.is_floating


def _are_variables(sources: Any) -> bool:
    """Whether all of `sources`, at least one, are variables."""
    flat = tf.nest.flatten(sources)
    return bool(flat) and all(isinstance(each, keras.Variable | tf.Variable) for each in flat)
