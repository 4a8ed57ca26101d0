"""The rows of the global batch on every replica, put together of each one's own. All replicas must come here."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from dtjob_trainer.models.losses import Cut

_MASK = "_keras_mask"
_WHOLE = (tf.bool, tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.uint32)
_SUMMED_AS = dict.fromkeys(_WHOLE, tf.float64) | {tf.float16: tf.float32, tf.bfloat16: tf.float32}
"""What is reduced instead of what not every strategy reduces: int32 is not between GPUs of several tasks, int64 not on
TPUs, and float64 holds all of these exactly."""


def of(structure: Any, cut: Cut) -> Any:
    """`structure` (tuples, lists and dicts of anything) with every tensor of rows as that of the global batch.

    A tensor has rows where its first dimension is open. A scalar counts for this replica's rows: one of a real number
    becomes the mean, a whole number the sum.
    """
    return tf.nest.map_structure(lambda part: _of(part, cut), structure)


def _of(part: Any, cut: Cut) -> Any:
    if not isinstance(part, tf.Tensor) or part.dtype == tf.string:
        return part
    if part.shape.rank == 0:
        return _sum(cut.mean(part) if part.dtype.is_floating else cut.counted(part))
    if part.shape.rank is not None and part.shape[0] is not None:
        return part
    rows = _joined(part, cut)
    mask = getattr(part, _MASK, None)
    if mask is not None:
        setattr(rows, _MASK, _joined(mask, cut))
    return rows


def _joined(part: Any, cut: Cut) -> Any:
    """This replica's rows of `part` (none where they only stand in), and the others', in the order of replicas."""
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    mine = cut.counted(tf.shape(part)[0])
    counts = _sum(tf.one_hot(number, cut.replicas, dtype=tf.int32) * mine)
    before, total = tf.reduce_sum(counts[:number]), tf.reduce_sum(counts)
    rest = tf.zeros([tf.rank(part) - 1, 2], tf.int32)
    paddings = tf.concat([[[before, total - before - mine]], rest], 0)
    return tf.ensure_shape(_sum(tf.pad(part[:mine], paddings)), [None, *part.shape[1:]])


def _sum(part: Any) -> Any:
    context = tf.distribute.get_replica_context()
    summed = tf.cast(tf.stop_gradient(part), _SUMMED_AS.get(part.dtype, part.dtype))
    return tf.cast(context.all_reduce(tf.distribute.ReduceOp.SUM, summed), part.dtype)
