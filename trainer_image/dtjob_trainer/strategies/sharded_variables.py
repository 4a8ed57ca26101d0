"""Keras 3 models whose variables ParameterServer's partitioner cuts into shards, which Keras itself cannot train.

A shard is a range of rows on one ps. Keras takes the whole for one variable; where it would ask a `ShardedVariable` for
what it does not have (a handle, a place, an update by the strategy), this module answers instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.parameter_server_strategy_v2 import ParameterServerStrategyV2Extended

from dtjob_trainer.errors import StrategyError

ShardedVariable = tf.__internal__.distribute.ShardedVariable


def partitioner(options: Mapping[str, Any], servers: int) -> Any:
    """The partitioner that `strategyOptions.partitioner` asks for; None where it asks for none.

    `servers` is the number of parameter servers. Integers stay whole: they are counters and seeds, which Keras reads
    as one.
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

    def partition(shape: Any, dtype: Any, axis: int = 0) -> Any:
        if not tf.as_dtype(dtype).is_floating:
            return [1] * len(shape)
        return made(shape, dtype, axis)

    return partition


def allow_in_keras() -> None:
    """Have this process's Keras optimizers take sharded variables. For ParameterServer, one replica a worker."""
    _allow_update_of_wholes(ParameterServerStrategyV2Extended)
    _allow_slots(keras.Optimizer)
    _allow_updates(keras.Optimizer)
    _allow_weight_decay(keras.Optimizer)
    ShardedVariable.__array__ = lambda self, dtype=None, copy=None: np.asarray(self.numpy(), dtype)


def _allow_update_of_wholes(extended: Any) -> None:
    """Have `strategy.extended.update` take what lies in shards: it has no one place to update it at."""
    update = extended._update

    def update_whole(self: Any, var: Any, fn: Any, args: Any, kwargs: Any, group: bool) -> Any:
        if not is_sharded(var):
            return update(self, var, fn, args, kwargs, group)
        fn(var, *args, **kwargs)
        return None

    extended._update = update_whole


def _allow_slots(optimizer: Any) -> None:
    place_beside = optimizer.add_variable_from_reference

    def add_variable_from_reference(self: Any, reference_variable: Any, **options: Any) -> Any:
        if not is_sharded(reference_variable):
            return place_beside(self, reference_variable, **options)
        # a shard cannot be placed beside a whole; cut by the same partitioner, it is spread as its variable is
        strategy, self._distribution_strategy = self._distribution_strategy, _Anywhere()
        try:
            return place_beside(self, reference_variable, **options)
        finally:
            self._distribution_strategy = strategy

    optimizer.add_variable_from_reference = add_variable_from_reference


def _allow_updates(optimizer: Any) -> None:
    update = optimizer._backend_update_step

    def backend_update_step(self: Any, gradients: Any, variables: Any, learning_rate: Any) -> None:
        pairs = list(zip(gradients, variables, strict=True))
        for gradient, variable in pairs:
            if is_sharded(variable):
                self.update_step(gradient, variable.value, learning_rate)
        whole = [(gradient, variable) for gradient, variable in pairs if not is_sharded(variable)]
        if whole:
            update(self, [gradient for gradient, _ in whole], [variable for _, variable in whole], learning_rate)

    optimizer._backend_update_step = backend_update_step


def _allow_weight_decay(optimizer: Any) -> None:
    decay = optimizer._apply_weight_decay

    def apply_weight_decay(self: Any, variables: Any) -> None:
        if self.weight_decay is None:
            return
        for variable in filter(is_sharded, variables):
            if self._use_weight_decay(variable):
                rate = tf.cast(self.learning_rate * self.weight_decay, variable.value.dtype)
                variable.value.assign_sub(tf.convert_to_tensor(variable.value) * rate)
        decay(self, [variable for variable in variables if not is_sharded(variable)])

    optimizer._apply_weight_decay = apply_weight_decay


def is_sharded(variable: Any) -> bool:
    """Whether a Keras variable (or its value) lies in shards."""
    return isinstance(getattr(variable, "value", variable), ShardedVariable)


def check_own_step(model: Any) -> None:
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
    if all(gradient is None for gradient in gradients):
        return None
    shards = variable.value.variables
    return tf.concat(
        [tf.zeros_like(s) if g is None else tf.convert_to_tensor(g) for g, s in zip(gradients, shards, strict=True)], 0
    )


class _Anywhere:
    """A strategy as far as an optimizer asks it where to place a variable: anywhere."""

    @property
    def extended(self) -> Any:
        return self

    def colocate_vars_with(self, variable: Any) -> Any:
        return tf.device(None)
