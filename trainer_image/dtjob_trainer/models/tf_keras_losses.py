# SPDX-License-Identifier: Apache-2.0
"""tf_keras's losses in a replica's step: computed as on one device, and scaled by nobody."""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.src.utils import losses_utils

from dtjob_trainer.errors import LossError
from dtjob_trainer.models import average_loss
from dtjob_trainer.models.metric_updates import counting
from dtjob_trainer.placement import layers, tracker
from dtjob_trainer.placement.cuts import replaced, unscaled

_own_scale = losses_utils.scale_loss_for_distribution
_own_reduction_of = tf_keras.losses.Loss._get_reduction
_Reduction = losses_utils.ReductionV2


def of_model(model: Any, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> Any:
    """`model`'s loss (scalar) of the batch; counts it in the metrics of losses.

    Raises LossError for a loss that is no scalar, and where there is none.
    """
    is_own = type(model).compute_loss is not tf_keras.Model.compute_loss
    value = model.compute_loss(x, y, y_pred, sample_weight)
    if is_own and (value is None or value.shape.rank != 0):
        raise LossError("the model's compute_loss() must return a scalar: the mean over the examples that it is given")
    if value.shape.rank != 0:
        raise LossError("compile(): a loss with reduction none has a value for each example; use sum_over_batch_size")
    compiled = any(loss is not None for loss in tf.nest.flatten(model.compiled_loss._losses))
    if not (is_own or compiled or model.losses):
        raise LossError("model has no loss; give one to model.compile(), or call add_loss() in the model")
    return value


@contextlib.contextmanager
def of_global_batch() -> Iterator[None]:
    """While this lasts, tf_keras's losses in a replica's step are one device's; elsewhere they stay what they are."""
    with (
        replaced(losses_utils, scale_loss_for_distribution=_scale),
        replaced(tf_keras.losses.Loss, _get_reduction=_reduction_of),
        layers.by_rows(tf_keras.layers.Layer, "tf_keras"),
        average_loss.of_one_device(),
    ):
        yield


def conformed(container: Any, y_pred: Any, *structures: Any) -> tuple[Any, ...]:
    """`structures` (targets, weights) as a container of compiled losses or metrics has them for `y_pred`."""
    return tuple(container._conform_to_outputs(y_pred, structure) for structure in structures)


def _scale(value: Any) -> Any:
    """tf_keras's division of a loss by the number of replicas."""
    return value if tracker.current() is not None or unscaled.get() else _own_scale(value)


def _reduction_of(loss: Any) -> Any:
    """As tf_keras's `Loss._get_reduction`, which refuses to take means where it knows of several replicas."""
    if tracker.current() is None and not unscaled.get() and not _alone():
        return _own_reduction_of(loss)
    return _Reduction.SUM_OVER_BATCH_SIZE if loss.reduction == _Reduction.AUTO else loss.reduction


def _alone() -> bool:
    """Whether the step that is being traced is of one replica."""
    cut = counting.get()
    return cut is not None and cut.replicas == 1
