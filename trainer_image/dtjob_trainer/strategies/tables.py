# SPDX-License-Identifier: Apache-2.0
"""Large tables of Keras 3 models on parameter servers: a step moves the rows that it looks up, and no others.

`keras.ops.take` reads the whole table to the worker, and Keras's Adagrad computes with all rows of the accumulator.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.strategies.sharded_variables import ShardedVariable


def look_up_in_place() -> None:
    """Have this process's Keras take rows of a variable where the variable is. For ParameterServer."""

    def in_place(own: Callable[..., Any]) -> Callable[..., Any]:
        def take(x: Any, indices: Any, axis: int | None = None) -> Any:
            table = _table(x) if axis == 0 else None
            if table is None or isinstance(indices, tf.SparseTensor):
                return own(x, indices, axis)
            if isinstance(indices, tf.RaggedTensor):
                return indices.with_values(_rows(x, table, indices.values))
            return _rows(x, table, indices)

        return take

    hooks.put(keras3.TAKE, in_place)


def update_looked_up_rows() -> None:
    """Have this process's Keras Adagrad read and write only the rows of a gradient of slices: the same numbers."""

    def by_rows(own: Callable[..., None]) -> Callable[..., None]:
        def update_step(self: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
            if not isinstance(gradient, tf.IndexedSlices):
                own(self, gradient, variable, learning_rate)
                return
            accumulator = keras3.accumulators(self)[keras3.place_of(self, variable)]
            sums = accumulator.value if isinstance(accumulator, keras.Variable) else accumulator
            values, indices = tf.cast(gradient.values, variable.dtype), gradient.indices
            sums.scatter_add(tf.IndexedSlices(tf.square(values), indices))
            divisors = tf.sqrt(tf.gather(sums, indices) + self.epsilon)
            variable.scatter_sub(tf.IndexedSlices(tf.cast(learning_rate, variable.dtype) * values / divisors, indices))

        return update_step

    hooks.put(keras3.ADAGRAD_STEP, by_rows)


def _table(x: Any) -> Any:
    """The TensorFlow variable behind a Keras variable; None for anything else, or where Keras computes without it."""
    value = keras3.value_behind(x) if isinstance(x, keras.Variable) else None
    return value if isinstance(value, (tf.Variable, ShardedVariable)) else None


def _rows(x: Any, table: Any, indices: Any) -> Any:
    """Rows of the `table` of the Keras variable `x`, in the type that a layer computes with."""
    indices = tf.convert_to_tensor(indices)
    if not indices.dtype.is_integer:
        indices = tf.cast(indices, tf.int32)
    counted = tf.where(indices < 0, indices + tf.cast(table.shape[0], indices.dtype), indices)
    return keras3.autocast(x, tf.nn.embedding_lookup(table, counted))
