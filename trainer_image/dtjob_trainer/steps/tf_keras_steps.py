# SPDX-License-Identifier: Apache-2.0
"""One device's losses and gradients of tf_keras in a replica's step. Imported only for a model of tf_keras."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import tf_keras

from dtjob_trainer.errors import LossError
from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks import tf_keras as framework
from dtjob_trainer.placement import layers, shard, sums
from dtjob_trainer.steps import losses

_Reduction = tf_keras.losses.Reduction


def loss_of(model: Any, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> Any:
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
        hooks.during(framework.LOSS_SCALED, hooks.around(losses.unscaled)),
        hooks.during(framework.SUMS_SHOWN, losses.OneDevice),
        hooks.during(framework.REDUCTION, hooks.around(_reduction_of)),
        layers.by_rows(tf_keras.layers.Layer, "tf_keras"),
        losses.averages_of_one_device(),
    ):
        yield


def _reduction_of(own: Callable[[Any], Any], loss: Any) -> Any:
    """tf_keras's `Loss._get_reduction`, which refuses to take means where it knows of several replicas."""
    mine = shard.traced.get()
    if not losses.are_one_devices() and not (mine is not None and mine.replicas == 1):
        return own(loss)
    return _Reduction.SUM_OVER_BATCH_SIZE if loss.reduction == _Reduction.AUTO else loss.reduction


def sums_of_one_device(on_unknown: Callable[[Any], object] = lambda variable: None) -> AbstractContextManager[None]:
    """While this lasts, tf_keras's optimizers sum gradients as one device does.

    - on_unknown: called with a table if nobody knows how rows are looked up in it (`placement.sums.OnUnknown`).
    """
    return hooks.during(framework.GRADIENTS_SUMMED, lambda _: partial(_summed, on_unknown))


def _summed(on_unknown: Callable[[Any], object], gradients: Iterable[Any]) -> list[Any]:
    """One device's gradients of (gradient, variable) pairs, with the variables."""
    pairs = list(gradients)
    framework.warn_of_missing(pairs)
    found = sums.of_one_device([gradient for gradient, _ in pairs], lambda place: on_unknown(pairs[place][1]))
    return [(gradient, variable) for gradient, (_, variable) in zip(found, pairs, strict=True)]
