# SPDX-License-Identifier: Apache-2.0
"""The rows of the global batch on every replica, put together of each one's own. All replicas must come here."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.cuts import Cut

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


def joined(parts: Sequence[tuple[Any, str]], cut: Cut) -> list[Any]:
    """Tensors of the global batch in place of this replica's, each given with its kind, `rows`, `mean` or `free`.

    Rows are joined, of means over rows there is the mean, and what has nothing to do with rows stays. Gradients flow
    to this replica's tensors alone, and as those of a mean over its rows: weighted by its part of the rows, their sum
    over the replicas is one device's gradient.
    """
    rows = [part for part, kind in parts if kind == "rows"]
    shapes = iter(_shapes(rows, cut))
    found = []
    for part, kind in parts:
        if kind == "rows":
            found.append(_joined_with_gradient(part, next(shapes), cut))
        elif kind == "mean":
            found.append(_with_gradient_of(_sum(cut.mean(part)), part))
        else:
            found.append(part)
    return found


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


def _shapes(parts: Sequence[Any], cut: Cut) -> list[Any]:
    """Each replica's shape of each of `parts`, [replicas, rank]; no rows where they only stand in."""
    if not parts:
        return []
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    own = [tf.concat([[cut.counted(tf.shape(part)[0])], tf.shape(part)[1:]], 0) for part in parts]
    mine = tf.concat(own, 0)
    every = _sum(tf.one_hot(number, cut.replicas, dtype=tf.int32)[:, None] * mine[None])
    return tf.split(every, [part.shape.rank for part in parts], axis=1)  # type: ignore[no-any-return]


def _joined_with_gradient(part: Any, shapes: Any, cut: Cut) -> Any:
    """As `_joined`, given the `shapes` of all replicas; narrower rows than the widest are filled up with zeros."""
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    mine, counts = shapes[number], shapes[:, 0]
    before, after = tf.reduce_sum(counts[:number]), tf.reduce_sum(counts[number + 1 :])
    own = part[: mine[0]]
    if any(size is None for size in part.shape[1:]):
        own = tf.pad(own, _missing(mine, shapes))
    around = [[[before, after]], tf.zeros([part.shape.rank - 1, 2], tf.int32)]
    others = _sum(tf.pad(own, tf.concat(around, 0)))
    if part.dtype.is_floating:
        own = _amplified(own, tf.math.divide_no_nan(tf.cast(cut.total, own.dtype), tf.cast(cut.examples, own.dtype)))
    whole = tf.concat([others[:before], own, others[before + mine[0] :]], 0)
    return tf.ensure_shape(whole, [None, *part.shape[1:]])


def _missing(mine: Any, shapes: Any) -> Any:
    """Paddings of this replica's rows to the widest of all replicas."""
    missing = tf.reduce_max(shapes, 0)[1:] - mine[1:]
    return tf.concat([[[0, 0]], tf.stack([tf.zeros_like(missing), missing], 1)], 0)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _amplified(value: Any, factor: Any) -> Any:
    """`value`, whose gradient is multiplied by `factor`."""
    return tf.identity(value), lambda gradient: (gradient * factor, None)


@tf.custom_gradient  # type: ignore[untyped-decorator]
def _with_gradient_of(value: Any, other: Any) -> Any:
    """`value`, whose gradient flows to `other`."""
    return tf.identity(value), lambda gradient: (None, gradient)


def _sum(part: Any) -> Any:
    context = tf.distribute.get_replica_context()
    summed = tf.cast(tf.stop_gradient(part), _SUMMED_AS.get(part.dtype, part.dtype))
    return tf.cast(context.all_reduce(tf.distribute.ReduceOp.SUM, summed), part.dtype)
