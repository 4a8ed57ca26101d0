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
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.models import averages, replicas
from dtjob_trainer.models.gradients import indexed_slices, overwritten
from dtjob_trainer.models.loss_scale import LossScale
from dtjob_trainer.models.optimizers import innermost, outermost
from dtjob_trainer.placement import joined, kinds, sums, tracker


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
            for hook, owner, wrap in _replacements(optimizer, is_wrapped, traits, doubt):
                stack.enter_context(hooks.during(hook, wrap, on=owner))
        yield


def _replacements(
    optimizer: Any, is_wrapped: bool, traits: Traits, doubt: Callable[[Any], object]
) -> Iterator[tuple[hooks.Hook, Any, hooks.Wrap]]:
    """What methods of `optimizer`, and of those inside it, are while a step is traced: hook, owner and replacement.

    - is_wrapped: another optimizer applies it, and gives it sums.
    """
    if traits.synchronous and not is_wrapped:
        yield keras3.APPLY, optimizer, lambda own: partial(_sum_and_apply, optimizer, _summed(optimizer, own), doubt)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        scale = LossScale(optimizer)
        yield keras3.SCALED_APPLIED, optimizer, lambda _: hooks.noted(keras3.SCALED_APPLIED, scale.apply)
        if traits.asynchronous:
            yield keras3.LOSS_SCALED_UP, optimizer, lambda _: scale.scale_loss
    for inner in innermost(optimizer):
        if traits.synchronous:
            yield keras3.GRADIENTS_SUMMED, inner, lambda _: hooks.noted(keras3.GRADIENTS_SUMMED, list)
        if _is_ours(inner):
            yield keras3.GRADIENTS_APPLIED, inner, partial(_updating, inner)


def _updating(inner: Any, _: Any) -> Callable[..., Any]:
    return hooks.noted(keras3.GRADIENTS_APPLIED, partial(_update, inner))


def _is_ours(inner: Any) -> bool:
    """Whether `_update` applies the gradients of an optimizer that updates variables."""
    return bool(inner.gradient_accumulation_steps or inner.use_ema)


def _summed(optimizer: Any, apply: Callable[..., Any]) -> Callable[..., Any]:
    """`apply` (Keras's own, of one optimizer), which raises FrameworkError if Keras does not call what we replace.

    Gradients would be summed twice then, or not be accumulated.
    """
    inner = innermost(optimizer)
    of_keras = all(map(keras3.sums_gradients, (optimizer, *inner)))
    scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)

    def applied(grads: Sequence[Any], trainable_variables: Any) -> Any:
        known = keras3.trained_by(optimizer) if trainable_variables is None else trainable_variables
        apart = overwritten.places(known)
        needed = of_keras and any(each is not None and place not in apart for place, each in enumerate(grads))
        with (
            hooks.expected(keras3.GRADIENTS_SUMMED, needed),
            hooks.expected(keras3.GRADIENTS_APPLIED, needed and all(map(_is_ours, inner))),
            hooks.expected(keras3.SCALED_APPLIED, needed and scales),
        ):
            return apply(grads, trainable_variables)

    return applied


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
    known = keras3.trained_by(optimizer) if trainable_variables is None else trainable_variables
    found = tracker.current()
    if found is not None:
        return _apply_one_devices(found, apply, grads, trainable_variables, known)
    apart = [place for place in overwritten.places(known) if grads[place] is not None]
    grads = [overwritten.of_each(grad) if place in apart else grad for place, grad in enumerate(grads)]
    add_up = partial(_sums, tf.distribute.get_replica_context())
    summed = indexed_slices.summed(grads, add_up, lambda place: doubt(known[place]))
    for place in apart:
        summed[place] = overwritten.largest(summed[place])
    return apply(summed, trainable_variables)


def _apply_one_devices(
    found: tracker.Tracker, apply: Callable[..., Any], grads: Sequence[Any], trainable_variables: Any, known: Any
) -> Any:
    """`apply` on one device's gradients, of a step whose tensors have placements."""
    apart = overwritten.places(known)
    summed = sums.of_one_device(found, [None if place in apart else grad for place, grad in enumerate(grads)])
    alone = [place for place in apart if grads[place] is not None]
    inside = tf.compat.v1.get_default_graph() is not found.graph
    with contextlib.nullcontext() if inside else found.within(kinds.Mode.OFF):
        for place in alone:
            each = overwritten.of_each(grads[place], found.cut)
            summed[place] = overwritten.largest(joined.sums([each])[0])
        return apply(summed, trainable_variables)


def _sums(context: Any, parts: list[Any]) -> list[Any]:
    return context.all_reduce(tf.distribute.ReduceOp.SUM, parts) if parts else []


def _update(optimizer: Any, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
    """Keras's `_backend_apply_gradients`, for gradients that are summed already."""
    if optimizer.gradient_accumulation_steps:
        _accumulate_or_update(optimizer, grads, trainable_variables)
    else:
        clipped = keras3.clipped(optimizer, grads)
        keras3.let_weights_decay(optimizer, trainable_variables)
        keras3.update_step_of(optimizer, clipped, trainable_variables, optimizer.learning_rate)
    averages.update(optimizer)


def _accumulate_or_update(optimizer: Any, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
    """Add to the accumulated gradients, or update with their mean.

    Keras decides in each replica by itself whether this step updates.
    """
    every = optimizer.gradient_accumulation_steps
    sums = [keras3.accumulated(optimizer, variable) for variable in trainable_variables]
    grads = [tf.convert_to_tensor(grad) for grad in grads]  # sparse ones, too, are accumulated in dense variables

    def update(grads: Sequence[Any]) -> None:
        means = [(grad + so_far.value) / every for grad, so_far in zip(grads, sums, strict=True)]
        means = keras3.clipped(optimizer, means)
        keras3.let_weights_decay(optimizer, trainable_variables)
        keras3.update_step_of(optimizer, means, trainable_variables, optimizer.learning_rate)
        replicas.assign(sums, [tf.zeros_like(mean) for mean in means])

    def accumulate(grads: Sequence[Any]) -> None:
        replicas.assign(sums, [grad + so_far.value for grad, so_far in zip(grads, sums, strict=True)])

    replicas.decide(tf.equal((keras3.calls_of(optimizer) + 1) % every, 0), update, accumulate, grads)
