# SPDX-License-Identifier: Apache-2.0
"""A `train_step` of the model's own: whether it knows of replicas, and for Keras 3 the optimizers that it applies.

Keras builds an optimizer when it is first applied, which is too late to be saved, and fails under Mirrored: here they
are built before training.
"""

import contextlib
import dis
import inspect
import sysconfig
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.models import inlined

_OF_REPLICAS = {"num_replicas_in_sync", "get_replica_context"}
"""What a step names that is written for several replicas."""

_PACKAGES = (*(sysconfig.get_paths()[name] for name in ("purelib", "stdlib")), str(Path(__file__).parents[1]))
"""Where functions are that are not the program's own."""

_HOMES = tuple(
    dict.fromkeys(
        next(base for base in kind.__mro__ if "apply" in vars(base))
        for kind in (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer, keras.optimizers.MultiOptimizer)
    )
)
"""The classes of Keras that have an `apply` of their own."""


def scaled_at(model: Any) -> str | None:
    """Where the class of `model`, a base of it, or a function of the program that they call, names replicas.

    As "file:line (name)". Such a step is taken to make its gradients add up to one device's. None: any other is taken
    as written for one device.
    """
    package = {"keras", "tf_keras"}
    kinds = [kind for kind in type(model).__mro__ if kind.__module__.partition(".")[0] not in package]
    parts = [getattr(part, "fget", None) or part for kind in kinds for part in vars(kind).values()]
    queue = [inspect.unwrap(part) for part in parts if callable(part)]
    seen: set[types.CodeType] = set()
    while queue:
        function = queue.pop(0)
        if not isinstance(function, types.FunctionType) or function.__code__ in seen:
            continue
        seen.add(function.__code__)
        names = dict(_names(function.__code__))
        for name in sorted(_OF_REPLICAS & names.keys()):
            return f"{function.__code__.co_filename}:{names[name]} ({name})"
        called = (inspect.unwrap(each) for name in names if callable(each := function.__globals__.get(name)))
        queue += [each for each in called if isinstance(each, types.FunctionType) and _is_of_program(each)]
    return None


def _is_of_program(function: types.FunctionType) -> bool:
    return not function.__code__.co_filename.startswith(_PACKAGES)


def _names(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """The names of globals and attributes that a function uses, and those within it, each with its line."""
    for instruction in dis.get_instructions(code):
        if instruction.argval in code.co_names:
            where = instruction.positions
            yield str(instruction.argval), (where and where.lineno) or code.co_firstlineno
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


def unbuilt(model: Any) -> list[str]:
    """The names of a Keras 3 model's layers that are not built yet."""
    return [layer.name for layer in keras3.layers_of(model, itself=False) if not layer.built]


def check_built(model: Any, traits: Traits) -> None:
    """Raise FitError for a Keras 3 model that cannot be called on `x`, and whose layers or metrics are not built."""
    if names := unbuilt(model):
        raise FitError(
            f"model: {type(model).__name__} has no call(), so that nobody can build {', '.join(names)}; begin it with "
            "keras.Input, or call it on one batch before fit()"
        )
    metrics = keras3.compiled_metrics(model)
    if traits.distributed and metrics is not None and not metrics.built and _are_reset(model, metrics):
        raise FitError(
            f"model: {type(model).__name__} has no call(), so that nobody can build the metrics of compile(); keep "
            "metrics in attributes of the model, and update them in train_step"
        )


def _are_reset(model: Any, metrics: Any) -> bool:
    """Whether compile() was given `metrics` that `model`, which may have others of its own, resets and reports."""
    given = keras.tree.flatten(keras3.given_metrics(metrics))
    return any(each is not None for each in given) and any(each is metrics for each in model.metrics)


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
        with inlined.functions():
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
            stack.enter_context(hooks.during(keras3.APPLY, lambda _: note, on=home))
        yield applied
