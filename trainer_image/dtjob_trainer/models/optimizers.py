"""Keras's optimizers under `tf.distribute`: gradients are summed over the replicas before anything is done with them.

Keras clips, tests for overflow and accumulates what each replica has by itself, and sums last. Summed first, all of
it acts on the gradient of the global batch, as on one device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits

_interim = tf.__internal__.distribute.interim
SCALED_BY_REPLICAS = ("initial_learning_rate", "end_learning_rate", "warmup_target", "values")
"""What of the settings of Keras's schedules is a learning rate; every schedule is linear in its rates."""


def limits(optimizer: Any, traits: Traits) -> Iterator[str]:
    """What of `optimizer` (Keras 3's) cannot be right under a strategy like that, each with its reason and the mend.

    A MultiOptimizer that is given a function knows its inner optimizers only once it is built.
    """
    inner = innermost(optimizer)
    overrides = any(map(overrides_apply, (optimizer, *inner)))
    for each in (optimizer, *(each for each in inner if each is not optimizer)):
        if traits.central_storage and isinstance(each, keras.optimizers.LossScaleOptimizer):
            yield "LossScaleOptimizer fails inside CentralStorage; use the policy mixed_bfloat16"
        if traits.distributed and getattr(each, "use_ema", False):
            yield "use_ema fails inside TensorFlow's strategies; leave it out"
        if traits.asynchronous and getattr(each, "gradient_accumulation_steps", None):
            yield (
                "gradient_accumulation_steps would mix the gradients of workers that know nothing of each other; "
                "use a larger batch_size"
            )
        if traits.asynchronous and isinstance(each, keras.optimizers.LossScaleOptimizer):
            yield "LossScaleOptimizer changes its scale between two workers' steps; use the policy mixed_bfloat16"
        if overrides and traits.distributed and getattr(each, "gradient_accumulation_steps", None):
            yield "gradient_accumulation_steps needs Keras's own apply(); leave the override out"


def of_model(model: Any) -> list[Any]:
    """Every optimizer of `model`: the compiled one and those that a subclass keeps as attributes.

    In an order that is the same in every process of a program.
    """
    return kept_by(model, (keras.optimizers.Optimizer,))


def kept_by(model: Any, kinds: tuple[type, ...]) -> list[Any]:
    """The optimizers of these `kinds` that `model` was compiled with or has as attributes, or in lists and dicts."""
    unique: list[Any] = []
    for value in [getattr(model, "optimizer", None), *_leaves(list(vars(model).values()))]:
        if isinstance(value, kinds) and not any(value is other for other in unique):
            unique.append(value)
    return unique


def _leaves(structure: Any) -> Iterator[Any]:
    """The leaves of lists, tuples and dicts."""
    if isinstance(structure, Mapping):
        structure = list(structure.values())
    if isinstance(structure, list | tuple):
        for part in structure:
            yield from _leaves(part)
    else:
        yield structure


def innermost(optimizer: Any) -> list[Any]:
    """The optimizers that update variables: `optimizer`, or those inside a LossScaleOptimizer or MultiOptimizer."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return list(getattr(inner, "optimizers", [inner]))


def overrides_apply(optimizer: Any) -> bool:
    """Whether the class of `optimizer` brings an `apply` that Keras does not know."""
    home = next((base for base in type(optimizer).__mro__ if "apply" in vars(base)), None)
    return home is not None and not home.__module__.startswith("keras.")


def acts_on_gradients(optimizer: Any) -> bool:
    """Whether `optimizer` (Keras 3's) does with the gradients what must be done with their sums, and not before it."""
    if hasattr(optimizer, "inner_optimizer"):
        return True
    names = ("clipnorm", "global_clipnorm", "clipvalue", "gradient_accumulation_steps")
    return any(getattr(inner, name) is not None for inner in innermost(optimizer) for name in names)


@contextlib.contextmanager
def summing_first(optimizers: Sequence[Any]) -> Iterator[None]:
    """While this lasts, `optimizers` (Keras 3's, under a synchronous strategy) sum gradients before all else."""
    replaced: list[tuple[Any, str]] = []

    def replace(optimizer: Any, name: str, function: Callable[..., Any]) -> None:
        vars(optimizer)[name] = function  # past Keras's own __setattr__, which keeps book of attributes
        replaced.append((optimizer, name))

    try:
        wrapped = [inner for optimizer in optimizers for inner in innermost(optimizer) if inner is not optimizer]
        for optimizer in optimizers:
            if any(optimizer is inner for inner in wrapped):  # its wrapper gives it sums
                continue
            replace(optimizer, "apply", partial(_sum_and_apply, optimizer.apply))
            for inner in innermost(optimizer):
                replace(inner, "_all_reduce_sum_gradients", list)
                if inner.gradient_accumulation_steps:
                    replace(inner, "_backend_apply_gradients", partial(_accumulate_or_update, inner))
        yield
    finally:
        for optimizer, name in replaced:
            del vars(optimizer)[name]


def _sum_and_apply(apply: Callable[..., Any], grads: Sequence[Any], trainable_variables: Any = None) -> Any:
    """`apply` (Keras's own, of one optimizer) on the sums of `grads` over all replicas."""
    present = [number for number, grad in enumerate(grads) if grad is not None]
    summed = list(grads)
    if present:
        context = tf.distribute.get_replica_context()
        sums = context.all_reduce(tf.distribute.ReduceOp.SUM, [grads[number] for number in present])
        for number, value in zip(present, sums, strict=True):
            summed[number] = value
    return apply(summed, trainable_variables)


def _accumulate_or_update(optimizer: Any, grads: Sequence[Any], trainable_variables: Sequence[Any]) -> None:
    """Keras's `_backend_apply_gradients` with gradient accumulation, for gradients that are summed already.

    Keras decides in each replica by itself whether this step updates, and no strategy can update variables within such
    a condition; here the decision is made once for all replicas.
    """
    every = optimizer.gradient_accumulation_steps
    sums = [optimizer._accumulated_gradients[optimizer._get_variable_index(v)] for v in trainable_variables]
    grads = [tf.convert_to_tensor(grad) for grad in grads]  # sparse ones, too, are accumulated in dense variables

    def update(grads: Sequence[Any]) -> None:
        means = [(grad + so_far.value) / every for grad, so_far in zip(grads, sums, strict=True)]
        means = optimizer._clip_gradients(means)
        optimizer._apply_weight_decay(trainable_variables)
        optimizer._backend_update_step(means, trainable_variables, optimizer.learning_rate)
        _interim.maybe_merge_call(_assign, tf.distribute.get_strategy(), sums, [tf.zeros_like(mean) for mean in means])

    def accumulate(grads: Sequence[Any]) -> None:
        totals = [grad + so_far.value for grad, so_far in zip(grads, sums, strict=True)]
        _interim.maybe_merge_call(_assign, tf.distribute.get_strategy(), sums, totals)

    def updates_now() -> Any:
        return tf.equal((optimizer._iterations.value + 1) % every, 0)

    def decide(run: Callable[[Any], Any]) -> None:
        def branch(function: Any) -> Any:
            run(function)
            return tf.constant(0)

        tf.cond(updates_now(), partial(branch, update), partial(branch, accumulate))

    def across_replicas(strategy: Any, grads: Sequence[Any]) -> None:
        decide(lambda function: strategy.extended.call_for_each_replica(function, args=(grads,)))

    if tf.__internal__.distribute.strategy_supports_no_merge_call():
        decide(lambda function: function(grads))
    else:
        tf.distribute.get_replica_context().merge_call(across_replicas, args=(grads,))


def _assign(strategy: Any, variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        strategy.extended.update(variable.value, lambda v, new: v.assign(new), args=(value,), group=False)


def scale_learning_rate(optimizer: Any, factor: int) -> None:
    """Multiply the learning rate of `optimizer` (of those inside it), or every rate of its schedule, by `factor`.

    Raises ValueError for a schedule or function that is not Keras's own: its rates have no name.
    """
    for inner in innermost(optimizer):
        _scale_own_rate(inner, factor)


def _scale_own_rate(optimizer: Any, factor: int) -> None:
    rate = optimizer._learning_rate
    if isinstance(rate, keras.Variable | tf.Variable):  # tf_keras's are TensorFlow's own
        optimizer.learning_rate = float(rate.numpy()) * factor
        return
    if not type(rate).__module__.startswith(("keras.", "tf_keras.")):
        raise ValueError(
            f"scale_lr cannot scale {type(rate).__name__}, which is not one of Keras's schedules; multiply its rates "
            "by dt.strategy().num_replicas_in_sync in your program"
        )
    settings = dict(rate.get_config())
    for name in SCALED_BY_REPLICAS:
        value = settings.get(name)
        if value is not None:
            settings[name] = [each * factor for each in value] if isinstance(value, list | tuple) else value * factor
    optimizer.learning_rate = type(rate).from_config(settings)
