# SPDX-License-Identifier: Apache-2.0
"""A replica's share of a tf_keras model's loss: over all replicas the shares sum up to the loss that one device has.

tf_keras chooses its divisors in two functions (of masks, and of what remains) and divides by the number of replicas in
a third; here they are those of the global batch. The loss is put together here too, as tf_keras does it, because its
own way counts each replica's loss in the metrics on the way.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.src.engine import compile_utils
from tf_keras.src.optimizers import utils as optimizer_utils
from tf_keras.src.utils import losses_utils

from dtjob_trainer.errors import LossError
from dtjob_trainer.models.by_rows import average_loss, layers, objects, scalars, tapes
from dtjob_trainer.models.cuts import Cut, current_cut, replaced, setting, unscaled, weighed
from dtjob_trainer.models.metric_updates import counting

_own_reduction = losses_utils.reduce_weighted_loss
_own_mask = losses_utils.apply_valid_mask
_own_scale = losses_utils.scale_loss_for_distribution
_own_reduction_of = tf_keras.losses.Loss._get_reduction
_own_sum = optimizer_utils.all_reduce_sum_gradients
_Reduction = losses_utils.ReductionV2


def share_of(model: Any, cut: Cut, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> Any:
    """This replica's share (scalar) of `model`'s loss of the global batch; counts it in the metrics of losses.

    A model with a `compute_loss` of its own counts what it counts. Raises LossError for a loss that is no scalar.
    """
    if type(model).compute_loss is tf_keras.Model.compute_loss:
        return _compiled(model, cut, y, y_pred, sample_weight)
    with setting(unscaled, True), setting(current_cut, cut.by_itself if cut.replicas > 1 else None):
        value = model.compute_loss(x, y, y_pred, sample_weight)
    if value is None or value.shape.rank != 0:
        raise LossError("the model's compute_loss() must return a scalar: the mean over the examples that it is given")
    return value if cut.replicas == 1 else scalars.share(value, cut)


@contextlib.contextmanager
def of_global_batch() -> Iterator[None]:
    """While this lasts, tf_keras's losses are as `share_of` needs them; elsewhere they stay what they are."""
    with (
        replaced(
            losses_utils, reduce_weighted_loss=_reduce, apply_valid_mask=_mask, scale_loss_for_distribution=_scale
        ),
        replaced(tf_keras.losses.Loss, _get_reduction=_reduction_of),
        replaced(optimizer_utils, all_reduce_sum_gradients=_weigh_and_sum),
        objects.heard(tf_keras.losses.Loss, "tf_keras"),
        layers.noted(tf_keras.layers.Layer),
        average_loss.of_one_device(),
        tapes.heard(),
    ):
        yield


def conformed(container: Any, y_pred: Any, *structures: Any) -> tuple[Any, ...]:
    """`structures` (targets, weights) as a container of compiled losses or metrics has them for `y_pred`."""
    return tuple(container._conform_to_outputs(y_pred, structure) for structure in structures)


def _compiled(model: Any, cut: Cut, y: Any, y_pred: Any, sample_weight: Any) -> Any:
    """As tf_keras's `LossesContainer.__call__`, with shares."""
    container = model.compiled_loss
    targets, weights = (tf.nest.flatten(part) for part in conformed(container, y_pred, y, sample_weight))
    outputs = tf.nest.flatten(y_pred)
    parts = (targets, outputs, weights, container._losses, container._loss_weights, container._per_output_metrics)
    shares, by_batch = [], True
    for target, output, weight, loss, factor, tracker in zip(*parts, strict=False):
        if target is None or loss is None:
            continue
        by_batch = False
        target, output, weight = compile_utils.match_dtype_and_rank(target, output, weight)
        weight = losses_utils.apply_mask(output, weight, losses_utils.get_mask(output))
        with setting(current_cut, cut if cut.replicas > 1 else None):
            share = loss(target, output, sample_weight=weight)
        if share.shape.rank != 0:
            raise LossError(
                "compile(): a loss with reduction none has a value for each example; use sum_over_batch_size"
            )
        if tracker is not None:
            _count(tracker, cut, share)
        shares.append(share if factor is None else share * factor)
    if model.losses:
        added = losses_utils.cast_losses_to_common_dtype(model.losses)
        shares.append(tf.add_n(added if cut.replicas == 1 else [scalars.share(each, cut) for each in added]))
    if not shares:
        raise LossError("model has no loss; give one to model.compile(), or call add_loss() in the model")
    total = tf.add_n(losses_utils.cast_losses_to_common_dtype(shares))
    _count(container._total_loss_mean, cut, total, by_batch=by_batch)
    return total


def _count(tracker: Any, cut: Cut, share: Any, *, by_batch: bool = False) -> None:
    """Have `tracker` (a Mean) count `share`: its mean over the replicas is one device's over its batches.

    Batches count by their examples, or once each where there are no targets (`by_batch`), as in tf_keras.
    """
    dtype = tracker.total.dtype
    examples, total = tf.cast(cut.examples, dtype), tf.cast(cut.total, dtype)
    tracker.total.assign_add(tf.cast(share, dtype) * (1 if by_batch else total))
    tracker.count.assign_add(examples / total if by_batch else examples)


def _reduce(weighted_losses: Any, reduction: Any = _Reduction.SUM_OVER_BATCH_SIZE) -> Any:
    """As tf_keras's `reduce_weighted_loss`, with the number of entries of the global batch."""
    cut = current_cut.get() or objects.cut_of(weighted_losses)
    if cut is None or reduction == _Reduction.NONE:
        return _own_reduction(weighted_losses, reduction)
    summed = tf.reduce_sum(weighted_losses)
    if reduction == _Reduction.SUM:
        return cut.spoken(cut.counted(summed))
    return cut.spoken(cut.mean(summed / tf.cast(tf.size(weighted_losses), summed.dtype)))


def _mask(losses: Any, weights: Any, mask: Any, reduction: Any) -> Any:
    """As tf_keras's `apply_valid_mask`, with the number of valid entries of the global batch."""
    cut = current_cut.get() or objects.cut_of(losses)
    if cut is None or mask is None or reduction not in (_Reduction.AUTO, _Reduction.SUM_OVER_BATCH_SIZE):
        return _own_mask(losses, weights, mask, reduction)
    mask = tf.cast(mask, losses.dtype)
    entries = tf.cast(tf.size(mask) // tf.shape(mask)[0] * cut.total, losses.dtype)
    return losses_utils.apply_mask(losses, weights, mask * (entries / cut.sum(tf.reduce_sum(mask))))


def _scale(value: Any) -> Any:
    """tf_keras's scaling of a replica's loss."""
    cut = current_cut.get()
    return value if unscaled.get() or (cut is not None and cut.alone) else _own_scale(value)


def _reduction_of(loss: Any) -> Any:
    """As tf_keras's `Loss._get_reduction`, which refuses to take means where it knows of several replicas."""
    cut = current_cut.get()
    if counting.get() is None and not unscaled.get() and (cut is None or not cut.alone):
        return _own_reduction_of(loss)
    return _Reduction.SUM_OVER_BATCH_SIZE if loss.reduction == _Reduction.AUTO else loss.reduction


def _weigh_and_sum(gradients: Any) -> Any:
    """As tf_keras's sum of (gradient, variable) pairs over the replicas; of an own step each weighed by its rows."""
    cut = current_cut.get()
    pairs = list(gradients)
    if cut is not None and cut.alone:
        pairs = list(zip(weighed(cut, [gradient for gradient, _ in pairs]), (v for _, v in pairs), strict=True))
    return _own_sum(pairs)
