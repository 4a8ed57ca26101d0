# SPDX-License-Identifier: Apache-2.0
"""Variables that are overwritten with their gradient (`overwrite_with_gradient`), as float8's scales and maxima are.

Such a "gradient" is a value that each replica computes of its rows. It is not summed: all replicas take the largest, as
Keras does where it puts several of them together. Of float8 that is what one device has.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.metric_updates import counting
from dtjob_trainer.placement.cuts import Cut


def places(variables: Sequence[Any]) -> list[int]:
    """Where among `variables` (Keras 3's or TensorFlow's) such variables are."""
    return [place for place, v in enumerate(variables) if getattr(v, "overwrite_with_gradient", False)]


def of_each(value: Any, cut: Cut | None = None) -> Any:
    """A tensor of which the sum over replicas has every replica's `value`: [...] → [replicas, ...]."""
    context, cut = tf.distribute.get_replica_context(), cut or counting.get()
    if cut is not None and cut.may_be_empty:
        value = tf.where(cut.examples > 0, value, value.dtype.min)
    mine = tf.equal(tf.range(context.num_replicas_in_sync), context.replica_id_in_sync_group)
    mine = tf.reshape(mine, [-1, *[1] * value.shape.rank])
    return tf.where(mine, value[tf.newaxis], tf.zeros_like(value)[tf.newaxis])


def largest(values: Any) -> Any:
    """What variables are overwritten with, of the sum of `of_each`."""
    return tf.reduce_max(values, 0)
