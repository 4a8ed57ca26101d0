# SPDX-License-Identifier: Apache-2.0
"""tf_keras's losses in a replica's step: computed as on one device, and scaled by nobody."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tf_keras

from dtjob_trainer.errors import LossError
from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks import tf_keras as framework
from dtjob_trainer.models import average_loss
from dtjob_trainer.models.metric_updates import counting
from dtjob_trainer.placement import layers, tracker
from dtjob_trainer.placement.cuts import unscaled

_Reduction = tf_keras.losses.Reduction


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
    compiled = any(loss is not None for loss in framework.losses_of(model.compiled_loss))
    if not (is_own or compiled or model.losses):
        raise LossError("model has no loss; give one to model.compile(), or call add_loss() in the model")
    return value


@contextlib.contextmanager
def of_global_batch() -> Iterator[None]:
    """While this lasts, tf_keras's losses in a replica's step are one device's; elsewhere they stay what they are."""
    with (
        hooks.during(framework.LOSS_SCALED, lambda own: partial(_scale, own)),
        hooks.during(framework.REDUCTION, _choosing),
        layers.by_rows(tf_keras.layers.Layer, "tf_keras"),
        average_loss.of_one_device(),
    ):
        yield


def conformed(container: Any, y_pred: Any, *structures: Any) -> tuple[Any, ...]:
    """`structures` (targets, weights) as a container of compiled losses or metrics has them for `y_pred`."""
    return tuple(framework.conformed(container, y_pred, structure) for structure in structures)


def _scale(own: Callable[[Any], Any], value: Any) -> Any:
    """tf_keras's division of a loss by the number of replicas."""
    return value if tracker.current() is not None or unscaled.get() else own(value)


def _choosing(own: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """tf_keras's `Loss._get_reduction`, which refuses to take means where it knows of several replicas."""

    def reduction_of(loss: Any) -> Any:
        if tracker.current() is None and not unscaled.get() and not _alone():
            return own(loss)
        return _Reduction.SUM_OVER_BATCH_SIZE if loss.reduction == _Reduction.AUTO else loss.reduction

    return reduction_of


def _alone() -> bool:
    """Whether the step that is being traced is of one replica."""
    cut = counting.get()
    return cut is not None and cut.replicas == 1
