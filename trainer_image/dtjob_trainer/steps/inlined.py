# SPDX-License-Identifier: Apache-2.0
"""Each `tf.function` that a step of replicas calls is traced as a part of the step.

By itself it would be traced once, into a graph that later steps get again: also one that was traced to see which
optimizers a step applies, and that applies none. And nobody would see losses and gradients in it.

Functions with attributes stay functions: TensorFlow finds them by these. So it puts cuDNN's kernels in the place of an
LSTM of tf_keras.

Variables that a step makes at its first call are made outside of its graph. Of a mirrored variable, TensorFlow cannot
take the initial values out of the graph: those of other replicas are read from the first one's.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import functions as framework
from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks.tensorflow import is_eager
from dtjob_trainer.placement.shard import setting

_inlining: ContextVar[bool] = ContextVar("inlining", default=False)


@contextlib.contextmanager
def functions() -> Iterator[None]:
    """While this lasts, functions that this thread calls in a graph become parts of that graph, and the variables that
    it makes are made outside of the graph."""
    _watch_calls()
    with setting(_inlining, True), tf.variable_creator_scope(_outside):
        yield


def _outside(make: Callable[..., Any], **kwargs: Any) -> Any:
    """Make a variable where the step is called from, unless its initial value is computed in the step."""
    initial = kwargs.get("initial_value")
    if tf.is_tensor(initial) and not is_eager(initial):
        return make(**kwargs)
    with tf.init_scope():
        return make(**kwargs)


@functools.cache
def _watch_calls() -> None:
    """Have functions look, for the rest of the process, whether they are to become parts of a graph."""
    hooks.put(framework.CALLED, lambda own: framework.left_unconverted(hooks.around(_call)(own)))


def _call(own: Callable[..., Any], function: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not _inlining.get() or tf.executing_eagerly() or framework.has_attributes(function):
        return own(function, *args, **kwargs)
    strategy = tf.distribute.get_strategy()
    by_xla = isinstance(strategy, tf.distribute.TPUStrategy)  # all of a step
    if framework.by_xla(function) and strategy.num_replicas_in_sync > 1 and not by_xla:
        _tell_of_xla(function.__name__)
    given, named = _given(function, args, kwargs)
    # as a function returns them: tensors, also of numbers, and of variables as they are now
    return tf.nest.map_structure(_as_tensor, framework.as_tensors(framework.call_python(function, given, named)))


@functools.cache
def _tell_of_xla(name: str) -> None:
    """Warn once of a function that asks for XLA."""
    warnings.warn(
        f"jit_compile=True of {name} is left aside, because several replicas share the step that calls it", stacklevel=2
    )


def _given(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """What the Python code of `function` is called with: numbers that its signature names, and arrays, are tensors."""
    both = framework.arguments_of(function, args, kwargs)
    if not any(map(_is_array, tf.nest.flatten(both))):
        return both
    found: tuple[Any, Any] = tf.nest.map_structure(
        lambda value: tf.convert_to_tensor(value) if _is_array(value) else value, both
    )
    return found


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _as_tensor(value: Any) -> Any:
    if value is None or isinstance(value, tf.TensorArray | tf.Operation):
        return value
    return framework.as_tensor(value)
