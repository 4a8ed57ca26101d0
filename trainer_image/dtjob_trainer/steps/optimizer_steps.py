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
from dtjob_trainer.frameworks import hooks, keras3, variables
from dtjob_trainer.placement import joined, shard, sums, tracker

OnUnknown = Callable[[Any], object]
"""Called with a table if nobody knows how rows are looked up in it (`placement.sums.OnUnknown`)."""


@contextlib.contextmanager
def of_all_replicas(
    optimizers: Sequence[Any], traits: Traits, on_unknown: OnUnknown = lambda variable: None
) -> Iterator[None]:
    """While this lasts, steps of `optimizers` (Keras 3's) are as on one device, under a strategy with these traits."""
    with contextlib.ExitStack() as stack:
        for optimizer in optimizers if traits.distributed else ():
            others = (other for other in optimizers if other is not optimizer)
            is_wrapped = any(inner is optimizer for other in others for inner in innermost(other))
            for hook, owner, wrap in _replacements(optimizer, is_wrapped, traits, on_unknown):
                stack.enter_context(hooks.during(hook, wrap, on=owner))
        yield


def innermost(optimizer: Any) -> list[Any]:
    """The optimizers that update variables: `optimizer`, or those inside a LossScaleOptimizer or MultiOptimizer."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return list(getattr(inner, "optimizers", [inner]))


def _replacements(
    optimizer: Any, is_wrapped: bool, traits: Traits, on_unknown: OnUnknown
) -> Iterator[tuple[hooks.Hook, Any, hooks.Wrap]]:
    """What methods of `optimizer`, and of those inside it, are while a step is traced: hook, owner and replacement.

    - is_wrapped: another optimizer applies it, and gives it sums.
    """
    if traits.synchronous and not is_wrapped:
        yield keras3.APPLY, optimizer, hooks.around(partial(_sum_and_apply, optimizer, on_unknown))
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        scale = LossScale(optimizer)
        yield keras3.SCALED_APPLIED, optimizer, lambda _: hooks.noted(keras3.SCALED_APPLIED, scale.apply)
        if traits.asynchronous:
            yield keras3.LOSS_SCALED_UP, optimizer, lambda _: scale.scale_loss
    for inner in innermost(optimizer):
        if traits.synchronous:
            yield keras3.GRADIENTS_SUMMED, inner, lambda _: hooks.noted(keras3.GRADIENTS_SUMMED, list)
        if _is_ours(inner):
            update = hooks.noted(keras3.GRADIENTS_APPLIED, partial(_update, inner))
            yield keras3.GRADIENTS_APPLIED, inner, hooks.around(update)


def _is_ours(inner: Any) -> bool:
    """Whether `_update` applies the gradients of an optimizer that updates variables."""
    return bool(inner.gradient_accumulation_steps or inner.use_ema)


def _sum_and_apply(
    optimizer: Any,
    on_unknown: OnUnknown,
    apply: Callable[..., Any],
    grads: Sequence[Any],
    trainable_variables: Any = None,
) -> Any:
    """`apply` (Keras's own, of one optimizer) on what one device has in place of all replicas' `grads`.

    A variable that is overwritten with its gradient (`overwrite_with_gradient`), as float8's scales and maxima are,
    takes the largest of what the replicas compute, as Keras does where it puts several of them together.
    """
    trainable_variables = None if trainable_variables is None else list(trainable_variables)
    known = keras3.trained_by(optimizer) if trainable_variables is None else trainable_variables
    apart = {
        place
        for place, variable in enumerate(known)
        if getattr(variable, "overwrite_with_gradient", False) and grads[place] is not None
    }
    own = [None if place in apart else grad for place, grad in enumerate(grads)]
    summed = sums.of_one_device(own, lambda place: on_unknown(known[place]))
    found = tracker.current()
    inside = found is None or tf.compat.v1.get_default_graph() is not found.graph
    with contextlib.nullcontext() if inside else tracker.off():
        for place in apart:
            summed[place] = tf.reduce_max(joined.sums([_of_each(grads[place])])[0], 0)
        with _called_by_keras(optimizer, any(each is not None for each in own)):
            return apply(summed, trainable_variables)


@contextlib.contextmanager
def _called_by_keras(optimizer: Any, has_gradients: bool) -> Iterator[None]:
    """Raise FrameworkError if Keras's `apply` does not call what we replace.

    Gradients would be summed twice then, or not be accumulated.
    """
    inner = innermost(optimizer)
    needed = has_gradients and all(map(keras3.sums_gradients, (optimizer, *inner)))
    scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    with (
        hooks.expected(keras3.GRADIENTS_SUMMED, needed),
        hooks.expected(keras3.GRADIENTS_APPLIED, needed and all(map(_is_ours, inner))),
        hooks.expected(keras3.SCALED_APPLIED, needed and scales),
    ):
        yield


def _of_each(value: Any) -> Any:
    """A tensor of which the sum over replicas has every replica's `value`: [...] → [replicas, ...]."""
    context, mine = tf.distribute.get_replica_context(), shard.traced.get()
    if mine is not None and mine.may_be_empty:
        value = tf.where(mine.examples > 0, value, value.dtype.min)
    place = tf.equal(tf.range(context.num_replicas_in_sync), context.replica_id_in_sync_group)
    place = tf.reshape(place, [-1, *[1] * value.shape.rank])
    return tf.where(place, value[tf.newaxis], tf.zeros_like(value)[tf.newaxis])


def _update(optimizer: Any, _: Any, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
    """Keras's `_backend_apply_gradients`, for gradients that are summed already."""
    every = optimizer.gradient_accumulation_steps
    totals = [keras3.accumulated(optimizer, variable) for variable in trainable_variables] if every else []

    def update(grads: Sequence[Any]) -> None:
        grads = keras3.clipped(optimizer, grads)
        keras3.let_weights_decay(optimizer, trainable_variables)
        keras3.update_step_of(optimizer, grads, trainable_variables, optimizer.learning_rate)

    def update_with_means(grads: Sequence[Any]) -> None:
        means = [(grad + so_far.value) / every for grad, so_far in zip(grads, totals, strict=True)]
        update(means)
        _assign(totals, [tf.zeros_like(mean) for mean in means])

    def accumulate(grads: Sequence[Any]) -> None:
        _assign(totals, [grad + so_far.value for grad, so_far in zip(grads, totals, strict=True)])

    if every:  # Keras decides in each replica by itself whether this step updates
        grads = [tf.convert_to_tensor(grad) for grad in grads]  # of sparse ones dense sums are kept
        is_due = tf.equal((keras3.calls_of(optimizer) + 1) % every, 0)
        _decide(is_due, update_with_means, accumulate, grads)
    else:
        update(grads)
    _update_averages(optimizer)


class LossScale:
    """How one LossScaleOptimizer of Keras 3 scales and unscales while its steps are traced: one scale for all replicas.

    Keras adjusts its scale inside conditions that each replica meets by itself, which fails where replicas share their
    variables; and it unscales by what the scale is by then, which under ParameterServer another worker's step may have
    changed meanwhile.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._scale_loss: Callable[[Any], Any] = optimizer.scale_loss
        self._used: Any = None
        """The scale of the loss in the step that is being traced, where one replica is traced at a time."""

    def scale_loss(self, loss: Any) -> Any:
        """Keras's `scale_loss` with a scale that `apply` knows again. For strategies with one replica a worker."""
        if not self._optimizer.built:
            return self._scale_loss(loss)
        self._used = tf.convert_to_tensor(self._optimizer.dynamic_scale)
        return keras.ops.multiply(loss, self._used)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Keras's `_tf_apply`, for gradients that are summed already: update where all are finite, and adjust the
        scale, unless the step of another worker has done that since this one's loss was scaled."""
        optimizer = self._optimizer
        scale, steps = (tf.convert_to_tensor(v) for v in (optimizer.dynamic_scale, optimizer.step_counter))
        known = self._used is not None and self._used.graph is scale.graph
        used = self._used if known else scale
        variables = trainable_variables or keras3.trained_by(optimizer)

        def unscale(grad: Any, variable: Any) -> Any:
            leave = grad is None or keras3.is_overwritten(optimizer, variable)
            return grad if leave else keras.ops.divide(grad, used)

        finite = optimizer.check_finite(grads)

        def update(grads: Any) -> None:
            optimizer.inner_optimizer.apply(grads, trainable_variables=trainable_variables)

        unscaled = [unscale(grad, variable) for grad, variable in zip(grads, variables, strict=True)]
        _decide(finite, update, lambda _: None, unscaled)
        grows = tf.logical_and(finite, tf.equal(steps, optimizer.dynamic_growth_steps - 1))
        adjusted = tf.where(finite, tf.where(grows, used * 2.0, used), used * 0.5)
        counted = tf.where(tf.logical_and(finite, tf.logical_not(grows)), steps + 1, 0)
        values = [tf.where(tf.equal(scale, used), adjusted, scale), tf.cast(counted, steps.dtype)]
        _assign([optimizer.dynamic_scale, optimizer.step_counter], values)


def averages_of(optimizer: Any) -> list[tuple[Any, Any]]:
    """Each variable that `optimizer`, which updates variables itself and is built, trains, with its moving average.

    None if it keeps no averages (`use_ema`).
    """
    pairs = keras3.averages_of(optimizer) if optimizer.use_ema else []
    return [(variable, average) for variable, average in pairs if average is not None]


def _update_averages(optimizer: Any) -> None:
    """One step of the averages of weights, after an update; in a replica's step. The formula is Keras's own.

    Keras assigns them in each replica by itself, and decides there whether they become the weights, which fails where
    replicas assign together. The very first step takes the weights as they are. Every `ema_overwrite_frequency` steps
    the weights are overwritten.
    """
    pairs = averages_of(optimizer)
    if not pairs:
        return
    steps, every = tf.convert_to_tensor(optimizer.iterations), optimizer.ema_overwrite_frequency
    first, momentum = tf.equal(steps, 0), optimizer.ema_momentum
    overwrites = tf.equal((steps + 1) % every, 0) if every else None

    def of_one(average: Any, variable: Any, first: Any, overwrites: Any) -> None:
        variable = variables.of_one_device(variable)
        kept = tf.where(first, tf.zeros([], average.dtype), tf.constant(momentum, average.dtype))
        new = kept * tf.convert_to_tensor(average) + (1 - kept) * tf.convert_to_tensor(variable)
        average.assign(new)
        if overwrites is not None:
            tf.cond(overwrites, lambda: _done(variable.assign(new)), _done)

    count = len(pairs)
    trained, averages = zip(*pairs, strict=True)
    whole = [_value_of(variable) for variable in trained]
    _update_copies(averages, of_one, whole, [first] * count, [overwrites] * count)


def _decide(condition: Any, chosen: Callable[[Any], None], otherwise: Callable[[Any], None], values: Any) -> None:
    """Run `chosen` where `condition` (a scalar, the same in all replicas) is true, else `otherwise`, in each replica.

    Both take `values`, this replica's tensors. The decision is made once for all replicas: no strategy can update
    variables within a condition that each replica meets by itself.
    """

    def of_one(condition: Any, run: Callable[[Callable[[Any], None]], Any]) -> None:
        tf.cond(condition, lambda: _done(run(chosen)), lambda: _done(run(otherwise)))

    def of_all(strategy: Any, condition: Any, values: Any) -> None:
        first = strategy.experimental_local_results(condition)[0]
        of_one(first, lambda branch: strategy.extended.call_for_each_replica(branch, args=(values,)))

    if variables.meets_to_assign():
        tf.distribute.get_replica_context().merge_call(of_all, args=(condition, values))
    else:
        of_one(condition, lambda branch: branch(values))


def _done(_: Any = None) -> Any:
    """What both branches of a condition give."""
    return tf.constant(0)


def _update_copies(updated: Sequence[Any], function: Callable[..., None], *values: Sequence[Any]) -> None:
    """Call `function` on what each replica holds of each variable (Keras's or TensorFlow's), and of its `values`."""

    def of_all(strategy: Any, values: Any) -> None:
        for variable, mine in zip(updated, values, strict=True):
            strategy.extended.update(_value_of(variable), function, args=tuple(mine), group=False)

    variables.merge_call(of_all, tf.distribute.get_strategy(), list(zip(*values, strict=True)))


def _assign(assigned: Sequence[Any], values: Sequence[Any]) -> None:
    """Assign each variable its value, which all replicas have computed alike."""
    _update_copies(assigned, lambda variable, value: variable.assign(value), values)


def _value_of(variable: Any) -> Any:
    """The `tf.Variable`, also a distributed one, of a Keras variable."""
    return variable.value if isinstance(variable, keras.Variable) else variable
