# SPDX-License-Identifier: Apache-2.0
"""Padding rows: a replica without rows in a step computes one row at weight 0, and what that changes is undone.

Sums over rows leave a padding row out. What layers of Keras and metrics change row by row does not.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.frameworks import keras3
from dtjob_trainer.placement import tracker
from dtjob_trainer.placement.shard import Shard

_LAYER = "BatchNormalization"
_STATISTICS = ("moving_mean", "moving_variance", "moving_stddev", "renorm_mean", "renorm_stddev")
"""Its attributes; the last three with `renorm`, and none before a layer is built."""


@contextlib.contextmanager
def kept(shard: Shard, variables: Sequence[Any]) -> Iterator[None]:
    """While this lasts, a replica whose row is a padding row leaves `variables`, of either package, as they were."""
    if not shard.may_be_empty:
        yield
        return
    with tracker.off():
        before = [tf.identity(_read(v)) for v in variables]
    yield
    with tracker.off():
        for variable, value in zip(variables, before, strict=True):
            variable.assign(tf.where(shard.examples > 0, _read(variable), value))


def _read(variable: Any) -> Any:
    return variable.value if isinstance(variable, keras.Variable) else variable.read_value()


def moving_statistics(model: Any, shard: Shard) -> list[Any]:
    """The variables of `model`, of either package, that BatchNormalization makes of its replica's rows, where there may
    be none. One that is synchronized makes them of all replicas' rows."""
    if not shard.may_be_empty:
        return []
    layers = [layer for layer in keras3.layers_of(model) if any(k.__name__ == _LAYER for k in type(layer).__mro__)]
    alone = [layer for layer in layers if not getattr(layer, "synchronized", False)]
    found = [getattr(layer, name, None) for layer in alone for name in _STATISTICS]
    return list({id(v): v for v in found if v is not None}.values())
