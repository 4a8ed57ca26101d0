"""A `train_step` or `test_step` of the model's own: what it returns, and for Keras 3 the optimizers that it applies.

Keras builds an optimizer when it is first applied, which is too late to be saved, and fails under Mirrored: here they
are built before training.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.models.losses import Cut, replaced, setting, unscaled

_HOMES = tuple(
    dict.fromkeys(
        next(base for base in kind.__mro__ if "apply" in vars(base))
        for kind in (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer, keras.optimizers.MultiOptimizer)
    )
)
"""The classes of Keras that have an `apply` of their own."""


def flat(logs: Any) -> dict[str, Any]:
    """What a step returned as one dict, without dicts inside it: those Keras takes apart as well."""
    found: dict[str, Any] = {}
    for name, value in (logs or {}).items():
        found |= flat(value) if isinstance(value, Mapping) else {name: value}
    return found


def evaluate_replica(step: Callable[[], Any], cut: Cut, *, only_where_counted: bool) -> dict[str, Any]:
    """One replica's test `step`, which updates metrics as it likes: its part of the mean of what that gives.

    - only_where_counted: evaluate no row that only stands in.
    """
    names: list[str] = []

    def evaluate() -> list[Any]:
        with setting(unscaled, True):
            logs = flat(step())
        names.extend(logs)
        return [tf.reduce_mean(tf.cast(value, tf.float32)) for value in logs.values()]

    if only_where_counted:
        values = tf.cond(cut.examples > 0, evaluate, lambda: [tf.constant(0.0) for _ in names])
    else:
        values = evaluate()
    return {name: cut.mean(value) for name, value in zip(names, values, strict=True)}


def check_built(model: Any, traits: Traits) -> None:
    """Raise FitError for a Keras 3 model without a `call` of its own whose layers or metrics are not built yet."""
    names = [layer.name for layer in model._flatten_layers(include_self=False) if not layer.built]
    if names:
        raise FitError(
            f"model: {type(model).__name__} has no call(), so that nobody can build {', '.join(names)}; begin it with "
            "keras.Input, or call it on one batch before fit()"
        )
    if traits.distributed and model._compile_metrics is not None and not model._compile_metrics.built:
        raise FitError(
            f"model: {type(model).__name__} has no call(), so that nobody can build the metrics of compile(); keep "
            "metrics in attributes of the model, and update them in train_step"
        )


def build_optimizers(
    model: Any, known: Sequence[Any], step: Callable[..., Any], specs: Sequence[Any], traits: Traits
) -> None:
    """Build those of `known`, the model's optimizers, that `step` applies, for the variables that it applies them to.

    - step: one replica's training step; it is traced on `specs`, the specs of its arguments, and never run.

    Raises FitError where `step` applies an optimizer that is not among `known`.
    """
    strategy = tf.distribute.get_strategy()
    if traits.asynchronous:
        tf.distribute.coordinator.ClusterCoordinator(strategy)  # run() asks for it; there is one for a strategy

    def replica(*data: Any) -> Any:
        step(*data)
        return tf.constant(0)

    function = tf.function(lambda *data: strategy.run(replica, args=data), autograph=False)
    with _recording() as applied:
        function.get_concrete_function(*specs)
    for optimizer, variables in applied:
        if not any(optimizer is each for each in known):
            raise FitError(
                f"train_step applies the optimizer {optimizer.name}, which no checkpoint would have; keep it in an "
                "attribute of the model itself"
            )
        if not optimizer.built:
            optimizer.build(model.trainable_variables if optimizer is model.optimizer else variables)


@contextlib.contextmanager
def _recording() -> Iterator[list[tuple[Any, list[Any]]]]:
    """While this lasts, Keras's optimizers note what they are applied to, each variable once, and do nothing."""
    applied: list[tuple[Any, list[Any]]] = []
    lock = threading.Lock()  # each replica is traced in a thread of its own

    def note(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        with lock:
            known = next((variables for optimizer, variables in applied if optimizer is self), None)
            if known is None:
                known = []
                applied.append((self, known))
            known += [v for v in trainable_variables or () if not any(v is other for other in known)]

    with contextlib.ExitStack() as stack:
        for home in _HOMES:
            stack.enter_context(replaced(home, apply=note))
        yield applied
