# SPDX-License-Identifier: Apache-2.0
"""The strategy that everything in this process uses without a `with` block, and what it is like."""

import contextlib
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from dtjob_trainer.contract.strategy import ALONE, TRAITS, Traits
from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, keras3, tensorflow, tf_keras, variables

_LIFELONG = contextlib.ExitStack()
"""Scopes that are entered for the life of the process, within that of the strategy."""
_creators: list[Callable[..., Any]] = []
"""What these scopes make variables with."""


def make_ambient(task: Task) -> None:
    """Make `task`'s strategy the ambient one of this process."""
    import tensorflow as tf

    from dtjob_trainer.strategies.create import create

    strategy = create(task)
    if strategy is not tf.distribute.get_strategy():
        tf.distribute.experimental_set_strategy(strategy)
        keep_in_new_graphs()
    if task.traits.shared_variables:
        _add_in_place()
    if task.traits.synchronous:
        _make_outside_of_functions()
        hooks.put(tf_keras.SEED_SOURCE, lambda own: SimpleNamespace(**vars(own)))  # tf_keras keeps one for a thread
    if task.traits.collective:
        # To see which attributes all optimizers have, Keras makes one beside each of a model that it saves. In the
        # scope all tasks have to make what one makes: a save at the chief alone would break off the training of all.
        hooks.put(keras3.SAMPLES_OF_SAVES, outside_strategy)
    if task.traits.central_storage:
        _creators.append(_aggregated)
        _enter_scopes()


def _enter_scopes() -> None:
    import tensorflow as tf

    for creator in _creators:
        _LIFELONG.enter_context(tf.variable_creator_scope(creator))


def _add_in_place() -> None:
    """Have Keras variables of this process add and subtract with the variable's own operation.

    Keras 3's `assign_add` is `assign(self + value)`. Under ParameterServer updates of two workers get lost between the
    two halves (measured: 271 of 400 steps counted); the variable's own operation is atomic. Under CentralStorage the
    sum over replicas would count the old value once for each replica.
    """
    import tensorflow as tf

    kinds = (tf.Variable, variables.sharded())

    def in_place(keras_own: Callable[[Any, Any], Any], self: Any, value: Any) -> Any:
        variable = self.value
        if not isinstance(variable, kinds):  # inside Keras's stateless scopes it is a mere tensor
            return keras_own(self, value)
        return getattr(variable, keras_own.__name__)(tf.cast(value, variable.dtype))

    hooks.put(keras3.ADD_IN_PLACE, hooks.around(in_place))


def _make_outside_of_functions() -> None:
    """Have Keras variables that a `tf.function` makes for several replicas of this process be made before it runs.

    An optimizer or a layer makes its variables in its first step. TensorFlow moves the initial values of the copies
    out of the function, and fails for those that read another copy ("You must feed a value for placeholder tensor").
    """
    import tensorflow as tf

    def outside(original: Callable[[Any, Any], None], self: Any, initializer: Any) -> None:
        several = tf.distribute.has_strategy() and len(tf.distribute.get_strategy().extended.worker_devices) > 1
        with tf.init_scope() if several and tf.inside_function() else contextlib.nullcontext():
            original(self, initializer)

    hooks.put(keras3.VARIABLE_MADE, hooks.around(outside))


def keep_in_new_graphs() -> None:
    """Keep the strategy where a program begins with a new graph, as by `keras.backend.clear_session()`.

    TensorFlow keeps the strategy in the default graph. Keras 3 and tf_keras call the function of different modules. A
    scope that is not left with its graph fails when Python collects the graph in another thread.
    """
    hooks.put(tensorflow.NEW_GRAPH, outside_strategy)


def traits_of(task: Task | None) -> Traits:
    """What the strategy is like that this process computes under: the job's.

    Of a program run by hand (None), which may have made a strategy ambient itself, what that is like.
    """
    if task is not None:
        return task.traits
    import tensorflow as tf

    if not tf.distribute.has_strategy():
        return ALONE
    kinds = {
        tf.distribute.OneDeviceStrategy: "OneDevice",
        tf.distribute.experimental.CentralStorageStrategy: "CentralStorage",
        tf.distribute.MultiWorkerMirroredStrategy: "MultiWorkerMirrored",
        tf.distribute.ParameterServerStrategy: "ParameterServer",
        tf.distribute.TPUStrategy: "TPU",
    }
    strategy = tf.distribute.get_strategy()
    return TRAITS[next((name for kind, name in kinds.items() if isinstance(strategy, kind)), "Mirrored")]


def outside_strategy(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with no ambient strategy while it runs."""
    import tensorflow as tf

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not tf.distribute.has_strategy():  # as in a thread: entering the default one would outlast it
            return function(*args, **kwargs)
        strategy = tf.distribute.get_strategy()
        _LIFELONG.close()
        tf.distribute.experimental_set_strategy(None)
        try:
            return function(*args, **kwargs)
        finally:
            tf.distribute.experimental_set_strategy(strategy)
            _enter_scopes()

    return run


def _aggregated(next_creator: Any, **arguments: Any) -> Any:
    """Make a variable that CentralStorage lets replicas assign: it refuses those that Keras leaves unaggregated."""
    import tensorflow as tf

    kinds = tf.VariableAggregation
    if arguments.get("aggregation") in (None, kinds.NONE):
        floating = arguments.get("dtype") is not None and tf.as_dtype(arguments["dtype"]).is_floating
        arguments["aggregation"] = kinds.MEAN if floating else kinds.ONLY_FIRST_REPLICA
    return next_creator(**arguments)
