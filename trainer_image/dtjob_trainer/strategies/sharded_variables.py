# SPDX-License-Identifier: Apache-2.0
"""Keras 3 models whose variables ParameterServer's partitioner cuts into shards, which Keras itself cannot train.

A shard is a range of rows on one ps. Keras takes the whole for one variable; where it would ask a `ShardedVariable` for
what it does not have (a handle, a place, an update by the strategy), this module answers instead. A step moves the rows
of a large table that it looks up, and no others.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.errors import StrategyError
from dtjob_trainer.frameworks import hooks, keras3, tensorflow
from dtjob_trainer.frameworks import variables as framework

ShardedVariable = framework.sharded()
_kinds = keras.optimizers
ROW_BY_ROW = (
    *(_kinds.SGD, _kinds.RMSprop, _kinds.Adagrad, _kinds.Adadelta, _kinds.Ftrl),
    *(_kinds.Adam, _kinds.AdamW, _kinds.Adamax, _kinds.Nadam, _kinds.Lion),
)
"""Optimizers that compute each number of a variable of that number, its gradient and its slots alone."""

OF_SHARDS = "_dtjob_of_shards"
"""The attribute of a joined gradient that has the gradients of the shards. An optimizer that changes the joined
gradient makes a new one without it. TensorFlow computes the joined gradient only if it is used."""


def partitioner(options: Mapping[str, Any], servers: int) -> Any:
    """The partitioner that `strategyOptions.partitioner` asks for; None where it asks for none.

    `servers` is the number of parameter servers.
    """
    wanted = options.get("partitioner")
    if not wanted:
        return None
    kinds = tf.distribute.experimental.partitioners
    if "fixedShards" in wanted:
        made = kinds.FixedShardsPartitioner(wanted["fixedShards"])
    elif "minShardBytes" in wanted:
        made = kinds.MinSizePartitioner(wanted["minShardBytes"], max_shards=wanted.get("maxShards", servers))
    else:
        made = kinds.MaxSizePartitioner(wanted["maxShardBytes"], max_shards=wanted.get("maxShards"))
    return of_floats(made)


def of_floats(partitioner: Any) -> Any:
    """`partitioner` for variables of floats. Integers stay whole: they are counters and seeds, which Keras reads as
    one."""

    def partition(shape: Any, dtype: Any, axis: int = 0) -> Any:
        if not tf.as_dtype(dtype).is_floating:
            return [1] * len(shape)
        return partitioner(shape, dtype, axis)

    return partition


def allow_in_keras() -> None:
    """Have this process's Keras take sharded variables and rows of them. For ParameterServer, one replica a worker."""
    framework.see_sharded()
    hooks.put(keras3.TAKE, hooks.around(_take_in_place))
    hooks.put(keras3.ADAGRAD_STEP, hooks.around(_update_looked_up_rows))
    hooks.put(tensorflow.UPDATE_OF_WHOLES, hooks.around(_update_whole))
    hooks.put(keras3.SLOT, hooks.around(_place_slot))
    hooks.put(keras3.UPDATE_STEP, hooks.around(_update_shards))
    hooks.put(keras3.WEIGHT_DECAY, hooks.around(_decay_shards))
    hooks.put(tensorflow.SHARDS_AS_ARRAY, lambda _: lambda self, dtype=None, copy=None: np.asarray(self.numpy(), dtype))


def _update_whole(update: Any, self: Any, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
    """`update` of a strategy's `extended`, which takes what lies in shards: it has no one place to update it at."""
    if not is_sharded(var):
        return update(self, var, fn, args, kwargs, group)
    fn(var, *args, **kwargs)
    return None


def _place_slot(place_beside: Any, self: Any, reference_variable: Any, **options: Any) -> Any:
    if not is_sharded(reference_variable):
        return place_beside(self, reference_variable, **options)
    # a shard cannot be placed beside a whole; cut by the same partitioner, it is spread as its variable is
    anywhere = SimpleNamespace(colocate_vars_with=lambda variable: tf.device(None))
    with keras3.under(self, SimpleNamespace(extended=anywhere)):
        return place_beside(self, reference_variable, **options)


def _update_shards(update: Any, self: Any, gradients: Any, variables: Any, learning_rate: Any) -> None:
    learning_rate = tf.convert_to_tensor(learning_rate)  # else each ps reads it once for each of its variables
    pairs = list(zip(gradients, variables, strict=True))
    for gradient, variable in pairs:
        if is_sharded(variable) and gradient is not None:
            _update(self, gradient, variable, learning_rate)
    whole = [(gradient, variable) for gradient, variable in pairs if not is_sharded(variable)]
    if whole:
        update(self, [gradient for gradient, _ in whole], [variable for _, variable in whole], learning_rate)


def _update(optimizer: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
    """Update a Keras variable in shards: each shard on its ps, where the optimizer computes row by row."""
    if type(optimizer).update_step not in {kind.update_step for kind in ROW_BY_ROW}:
        whole = tf.convert_to_tensor(gradient)
        optimizer.update_step(whole, variable.value, learning_rate)
        return

    def update_shards(distribution: Any) -> None:
        index = keras3.place_of(optimizer, variable)
        for place, (shard, part) in enumerate(_split(gradient, variable)):

            def update(shard: Any, part: Any, rate: Any, place: int = place) -> None:
                type(optimizer).update_step(_OfShard(optimizer, index, place), part, shard, rate)

            distribution.extended.update(shard, update, args=(part, learning_rate), group=False)

    framework.merge_call(update_shards, keras3.strategy_of(optimizer))


def _split(gradient: Any, variable: Any) -> Iterator[tuple[Any, Any]]:
    """Each shard of a Keras variable, and its rows of a gradient of the whole."""
    if hasattr(gradient, OF_SHARDS):
        yield from zip(variable.value.variables, getattr(gradient, OF_SHARDS), strict=True)
        return
    for first, shard in shards_of(variable.value):
        last = first + rows_of(shard)
        if not isinstance(gradient, tf.IndexedSlices):
            yield shard, gradient[first:last]
            continue
        here = tf.where((gradient.indices >= first) & (gradient.indices < last))[:, 0]
        rows, shape = tf.gather(gradient.indices, here) - first, tf.constant(shard.shape.as_list(), tf.int32)
        yield shard, tf.IndexedSlices(tf.gather(gradient.values, here), rows, shape)


class _OfShard:
    """An optimizer, as its `update_step` takes it, that has only one shard of the variables beside a variable."""

    def __init__(self, optimizer: Any, index: int, place: int) -> None:
        """`index`: the number of the variable in the optimizer's lists; `place`: that of its shard."""
        self._optimizer, self._index, self._place = optimizer, index, place

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._optimizer, name)
        if not isinstance(found, list) or self._index >= len(found) or not is_sharded(found[self._index]):
            return found
        return {self._index: found[self._index].value.variables[self._place]}

    def _get_variable_index(self, _: Any) -> int:
        return self._index


def _decay_shards(decay: Any, self: Any, variables: Any) -> None:
    if self.weight_decay is None:
        return

    def decay_shards(distribution: Any, shards: Any) -> None:
        for shard in shards:
            rate = tf.cast(self.learning_rate * self.weight_decay, shard.dtype)
            distribution.extended.update(shard, lambda s, r: s.assign_sub(s * r), args=(rate,), group=False)

    sharded = [variable for variable in variables if is_sharded(variable) and keras3.decays(self, variable)]
    shards = [shard for variable in sharded for shard in variable.value.variables]
    if shards:
        framework.merge_call(decay_shards, keras3.strategy_of(self), shards)
    decay(self, [variable for variable in variables if not is_sharded(variable)])


def _take_in_place(own: Any, x: Any, indices: Any, axis: int | None = None) -> Any:
    """`keras.ops.take`, which takes rows of a variable where the variable is: Keras's reads the whole to the worker."""
    table = _table(x) if axis == 0 else None
    if table is None or isinstance(indices, tf.SparseTensor):
        return own(x, indices, axis)
    if isinstance(indices, tf.RaggedTensor):
        return indices.with_values(_rows(x, table, indices.values))
    return _rows(x, table, indices)


def _update_looked_up_rows(own: Any, self: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
    """Adagrad's `update_step`, which reads and writes only the rows of a gradient of slices, with the same numbers.

    Keras's computes with all rows of the accumulator.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        own(self, gradient, variable, learning_rate)
        return
    accumulator = keras3.accumulators(self)[keras3.place_of(self, variable)]
    sums = accumulator.value if isinstance(accumulator, keras.Variable) else accumulator
    values, indices = tf.cast(gradient.values, variable.dtype), gradient.indices
    sums.scatter_add(tf.IndexedSlices(tf.square(values), indices))
    divisors = tf.sqrt(tf.gather(sums, indices) + self.epsilon)
    variable.scatter_sub(tf.IndexedSlices(tf.cast(learning_rate, variable.dtype) * values / divisors, indices))


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


def is_sharded(variable: Any) -> bool:
    """Whether a Keras variable (or its value) lies in shards."""
    return isinstance(getattr(variable, "value", variable), ShardedVariable)


def shards_of(value: Any) -> list[tuple[int, Any]]:
    """The `tf.Variable`s of a `ShardedVariable`, or the one of any other, each after the number of its first row."""
    shards = value.variables if is_sharded(value) else [value]
    return list(zip(accumulate(map(rows_of, shards[:-1]), initial=0), shards, strict=True))


def rows_of(shard: Any) -> int:
    """How many rows a `tf.Variable` has; 1 for a single number."""
    return shard.shape[0] if shard.shape.rank else 1


def check_custom_step(model: Any) -> None:
    """Raise StrategyError for a built model whose own train_step would meet variables in shards."""
    name = next((variable.path for variable in model.trainable_weights if is_sharded(variable)), None)
    if name is not None:
        raise StrategyError(
            f"strategyOptions.partitioner cuts variable {name} into shards, of which a train_step of the model's own "
            "cannot take gradients; leave partitioner out, or the train_step"
        )


def gradients_of(tape: Any, target: Any, variables: Sequence[Any]) -> list[Any]:
    """`tape.gradient` of `target` for Keras variables; those in shards get one gradient of the whole."""
    if not any(map(is_sharded, variables)):
        found: list[Any] = tape.gradient(target, variables)
        return found
    parts = tape.gradient(target, [list(v.value.variables) if is_sharded(v) else v for v in variables])
    return [_joined(part, v) if is_sharded(v) else part for part, v in zip(parts, variables, strict=True)]


def _joined(gradients: list[Any], variable: Any) -> Any:
    """The gradients of the shards as one; slices, with rows of the whole, where all of them are slices."""
    found = [gradient for gradient in gradients if gradient is not None]
    if not found:
        return None
    pairs = list(zip(gradients, shards_of(variable.value), strict=True))
    if all(isinstance(gradient, tf.IndexedSlices) for gradient in found):
        slices = [(g.values, g.indices + first) for g, (first, _) in pairs if g is not None]
        values, indices = zip(*slices, strict=True)
        shape = tf.constant(variable.value.shape.as_list(), tf.int32)
        joined = tf.IndexedSlices(tf.concat(values, 0), tf.concat(indices, 0), shape)
        if len(found) == len(gradients):
            setattr(joined, OF_SHARDS, gradients)
        return joined
    return tf.concat([tf.zeros_like(s) if g is None else tf.convert_to_tensor(g) for g, (_, s) in pairs], 0)
