# SPDX-License-Identifier: Apache-2.0
"""Keras 3's optimizers within a step under `tf.distribute`: they do with all replicas what they do on one device.

Keras clips, tests for overflow and accumulates what each replica has by itself, and sums last. Summed first, all of
it acts on the gradient of the global batch. The averages of weights are updated for all replicas at once, and a
dynamic loss scale is one for all of them.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.models import averages, replicas
from dtjob_trainer.models.gradients import indexed_slices, overwritten
from dtjob_trainer.models.instances import overridden
from dtjob_trainer.models.loss_scale import LossScale
from dtjob_trainer.models.optimizers import innermost, outermost


@contextlib.contextmanager
def of_all_replicas(
    optimizers: Sequence[Any], traits: Traits, doubt: Callable[[Any], object] = lambda variable: None
) -> Iterator[None]:
    """While this lasts, steps of `optimizers` (Keras 3's) are as on one device, under a strategy like that.

    - doubt: called with a table if it is not known how rows are looked up in it (`indexed_slices.summed`).
    """
    outer = outermost(optimizers)
    with contextlib.ExitStack() as stack:
        for optimizer in optimizers if traits.distributed else ():
            is_wrapped = not any(optimizer is each for each in outer)
            for owner, name, function in _replacements(optimizer, is_wrapped, traits, doubt):
                stack.enter_context(overridden(owner, **{name: function}))
        yield


def _replacements(
    optimizer: Any, is_wrapped: bool, traits: Traits, doubt: Callable[[Any], object]
) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """What methods of `optimizer`, and of those inside it, are while a step is traced: owner, name and function.

    - is_wrapped: another optimizer applies it, and gives it sums.
    """
    if traits.synchronous and not is_wrapped:
        yield optimizer, "apply", partial(_sum_and_apply, optimizer, optimizer.apply, doubt)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        scale = LossScale(optimizer)
        yield optimizer, "_tf_apply", scale.apply
        if traits.asynchronous:
            yield optimizer, "scale_loss", scale.scale_loss
    for inner in innermost(optimizer):
        if traits.synchronous:
            yield inner, "_all_reduce_sum_gradients", list
        if inner.gradient_accumulation_steps or inner.use_ema:
            yield inner, "_backend_apply_gradients", partial(_update, inner)


def _sum_and_apply(
    optimizer: Any,
    apply: Callable[..., Any],
    doubt: Callable[[Any], object],
    grads: Sequence[Any],
    trainable_variables: Any = None,
) -> Any:
    """`apply` (Keras's own, of one optimizer) on what one device has in place of all replicas' `grads`."""
    if trainable_variables is not None:
        trainable_variables = list(trainable_variables)
    known = optimizer._trainable_variables if trainable_variables is None else trainable_variables
    apart = [place for place in overwritten.places(known) if grads[place] is not None]
    grads = [overwritten.of_each(grad) if place in apart else grad for place, grad in enumerate(grads)]
    sums = partial(_sums, tf.distribute.get_replica_context())
    summed = indexed_slices.summed(grads, sums, lambda place: doubt(known[place]))
    for place in apart:
        summed[place] = overwritten.largest(summed[place])
    return apply(summed, trainable_variables)


def _sums(context: Any, parts: list[Any]) -> list[Any]:
    return context.all_reduce(tf.distribute.ReduceOp.SUM, parts) if parts else []


def _update(optimizer: Any, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
    """Keras's `_backend_apply_gradients`, for gradients that are summed already."""
    if optimizer.gradient_accumulation_steps:
        _accumulate_or_update(optimizer, grads, trainable_variables)
    else:
        clipped = optimizer._clip_gradients(grads)
        optimizer._apply_weight_decay(trainable_variables)
        optimizer._backend_update_step(clipped, trainable_variables, optimizer.learning_rate)
    averages.update(optimizer)


def _accumulate_or_update(optimizer: Any, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
    """Add to the accumulated gradients, or update with their mean.

    Keras decides in each replica by itself whether this step updates.
    """
    every = optimizer.gradient_accumulation_steps
    sums = [optimizer._accumulated_gradients[optimizer._get_variable_index(v)] for v in trainable_variables]
    grads = [tf.convert_to_tensor(grad) for grad in grads]  # sparse ones, too, are accumulated in dense variables

    def update(grads: Sequence[Any]) -> None:
        means = [(grad + so_far.value) / every for grad, so_far in zip(grads, sums, strict=True)]
        means = optimizer._clip_gradients(means)
        optimizer._apply_weight_decay(trainable_variables)
        optimizer._backend_update_step(means, trainable_variables, optimizer.learning_rate)
        replicas.assign(sums, [tf.zeros_like(mean) for mean in means])

    def accumulate(grads: Sequence[Any]) -> None:
        replicas.assign(sums, [grad + so_far.value for grad, so_far in zip(grads, sums, strict=True)])

    replicas.decide(tf.equal((optimizer._iterations.value + 1) % every, 0), update, accumulate, grads)
