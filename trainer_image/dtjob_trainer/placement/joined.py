# SPDX-License-Identifier: Apache-2.0
"""What replicas make of a placed tensor together. All replicas must come here, in the same order."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.placement import kinds
from dtjob_trainer.placement.kinds import PARTIAL, ROWS

_WHOLE = (tf.bool, tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.uint32)
_SUMMED_AS = dict.fromkeys(_WHOLE, tf.float64) | {tf.float16: tf.float32, tf.bfloat16: tf.float32}
"""What is reduced instead of what not every strategy reduces: int32 is not between GPUs of several tasks, int64 not on
TPUs, and float64 holds all of these exactly."""

Adjoint = Callable[[Any], Any]
"""Makes a gradient the same on all replicas."""


def sums(parts: Sequence[Any]) -> list[Any]:
    """The sums over the replicas of tensors, by one exchange; no gradient flows through."""
    totals = tf.distribute.get_replica_context().all_reduce(
        tf.distribute.ReduceOp.SUM, [_to_sum(tf.stop_gradient(part)) for part in parts]
    )
    return [
        tf.complex(*tf.unstack(total)) if part.dtype.is_complex else tf.cast(total, part.dtype)
        for total, part in zip(totals, parts, strict=True)
    ]


def _to_sum(part: Any) -> Any:
    if part.dtype.is_complex:  # which strategies do not reduce
        return tf.stack([tf.math.real(part), tf.math.imag(part)])
    return tf.cast(part, _SUMMED_AS.get(part.dtype, part.dtype))


def first_only(value: Any) -> Any:
    """A partial tensor: `value` on the first replica, and zeros on all others. So the sum over the replicas is `value`.

    All of the gradient by `value` flows through the first replica.
    """

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def once(part: Any) -> Any:
        return _of_first(part), lambda gradient: kinds.put(_of_first(gradient), PARTIAL)

    return kinds.put(once(value) if kinds.has_fractions(value.dtype) else _of_first(value), PARTIAL)


def _of_first(value: Any) -> Any:
    first = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 0)
    return tf.where(first, value, tf.zeros_like(value))


def same(values: Sequence[Any], adjoint: Adjoint) -> list[Any]:
    """The sums over the replicas of partial tensors. A gradient of a sum is that of each part."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def summed(*parts: Any) -> Any:
        return sums(parts), lambda *gradients: [adjoint(gradient) for gradient in gradients]

    return list(summed(*values))


def rows(value: Any, before: Any, mine: Any, after: Any, adjoint: Adjoint) -> Any:
    """The rows of all replicas in the place of this one's: [n, ...] → [N, ...].

    - before, mine, after: numbers of rows (int32) of the replicas before this one, of this one (fewer than `value` has
      if that is a padding row), and of those after it.

    A gradient by this replica's rows is rows, and one by all rows is partial.
    """
    there = tf.shape(value)[0]

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def joined(part: Any) -> Any:
        every = tf.ensure_shape(sums([_padded(part[:mine], before, after)])[0], [None, *part.shape[1:]])
        return every, lambda gradient: kinds.put(own_rows(adjoint(gradient), there, before, mine, after), ROWS)

    return joined(_as_wide_everywhere(value))


def own_rows(every: Any, there: Any, before: Any, mine: Any, after: Any) -> Any:
    """This replica's `there` rows of those of all replicas: [N, ...] → [n, ...]. Numbers are as for `rows`."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def own(every: Any) -> Any:
        found = _padded(every[before : before + mine], 0, there - mine)
        return found, lambda gradient: kinds.put(_padded(gradient[:mine], before, after), PARTIAL)

    return own(every)


def strings(value: Any, join: Callable[[Any], Any]) -> Any:
    """The rows of all replicas of strings, which no strategy reduces: `join` joins their letters and lengths."""
    lengths = tf.strings.length(value)
    letters = tf.io.decode_raw(value, tf.uint8, fixed_length=tf.reduce_max(lengths) + 1)
    every, lengths = tf.constant([bytes([letter]) for letter in range(256)]), join(lengths)
    words = tf.strings.reduce_join(tf.gather(every, tf.cast(join(letters), tf.int32)), -1)
    return tf.ensure_shape(tf.strings.substr(words, tf.zeros_like(lengths), lengths), value.shape)


def _padded(value: Any, before: Any, after: Any) -> Any:
    return tf.pad(value, tf.concat([[[before, after]], tf.zeros([value.shape.rank - 1, 2], tf.int32)], 0))


def _as_wide_everywhere(value: Any) -> Any:
    """`value`, filled up with zeros to the widest of all replicas where a width is open."""
    if all(size is not None for size in value.shape[1:]):
        return value
    mine = tf.shape(value)[1:]
    missing = widest(mine) - mine
    return tf.pad(value, tf.concat([[[0, 0]], tf.stack([tf.zeros_like(missing), missing], 1)], 0))


def widest(sizes: Any) -> Any:
    """The largest of all replicas' `sizes` (int32, [dimensions])."""
    context = tf.distribute.get_replica_context()
    each = tf.one_hot(context.replica_id_in_sync_group, context.num_replicas_in_sync, dtype=tf.int32)
    return tf.reduce_max(sums([each[:, None] * sizes[None]])[0], 0)


def apart(value: Any, blocks: int) -> Any:
    """`value` of several blocks of rows, with the blocks in a dimension of their own after that of the rows."""
    shape = tf.shape(value)
    parts = tf.reshape(value, tf.concat([[blocks, shape[0] // blocks], shape[1:]], 0))
    return tf.ensure_shape(_swapped(parts), [None, blocks, *value.shape[1:]])


def together(value: Any, blocks: int) -> Any:
    """What `apart` has taken apart, put together again."""
    shape = tf.shape(value)
    whole = tf.reshape(_swapped(value), tf.concat([[shape[0] * blocks], shape[2:]], 0))
    return tf.ensure_shape(whole, [None, *value.shape[2:]])


def _swapped(value: Any) -> Any:
    return tf.transpose(value, [1, 0, *range(2, value.shape.rank)])
