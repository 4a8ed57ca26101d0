# SPDX-License-Identifier: Apache-2.0
"""Gradients as an optimizer applies them: one device's, the partial ones of all variables summed by one exchange.

Of a table in which rows are looked up, one device has a slice for each look-up. A look-up of the batch's rows has its
slices on the replica that has these rows. One for all rows at once (`Embedding(arange(length))`) has the same slices
on each replica: one device has their sums.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.placement import joined, kinds
from dtjob_trainer.placement.kinds import Kind, Mode
from dtjob_trainer.placement.tracker import Tracker, dense


def of_one_device(tracker: Tracker, gradients: Sequence[Any]) -> list[Any]:
    """What one device has in place of each of `gradients` (None for none)."""
    if tf.compat.v1.get_default_graph() is not tracker.graph:
        return [None if each is None else tracker.same(each) for each in gradients]
    with tracker.graph.as_default(), tracker.within(Mode.OFF):
        parts = [_parts(tracker, gradient) for gradient in gradients]
        sent = [part for each in parts for part in each if _is_summed(part)]
        totals = iter(_all_reduced(sent))
        made = [[next(totals) if _is_summed(part) else part for part in each] for each in parts]
        return [
            None if gradient is None else _one(gradient, each) for gradient, each in zip(gradients, made, strict=True)
        ]


def _all_reduced(parts: list[Any]) -> list[Any]:
    if not parts:
        return []
    return list(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, parts))


def _parts(tracker: Tracker, gradient: Any) -> list[Any]:
    """A dense gradient by itself; the look-ups of which slices are put together."""
    if gradient is None:
        return []
    if not isinstance(gradient, tf.IndexedSlices):
        return [gradient if kinds.kind(gradient) in (None, Kind.PARTIAL) else tracker.same(gradient)]
    indices, values = _concatenated(gradient.indices), _concatenated(gradient.values)
    if len(indices) != len(values):
        indices, values = [gradient.indices], [gradient.values]
    pairs = list(zip(values, indices, strict=True))
    if any(kinds.kind(value) is Kind.PARTIAL and kinds.of(index) is not None for value, index in pairs):
        return [dense(tracker, gradient)]
    return [tf.IndexedSlices(value, index) for value, index in pairs]


def _concatenated(tensor: Any) -> list[Any]:
    """The tensors of which `tensor` is put together, where one table is looked up in several places."""
    if tensor.op.type == "ConcatV2":
        return [part for each in tensor.op.inputs[:-1] for part in _concatenated(each)]
    return [tensor]


def _is_summed(part: Any) -> bool:
    if isinstance(part, tf.IndexedSlices):
        return kinds.kind(part.indices) is Kind.ROWS
    return kinds.kind(part) is Kind.PARTIAL


def _one(gradient: Any, parts: list[Any]) -> Any:
    """One gradient of its parts."""
    if not isinstance(gradient, tf.IndexedSlices) or not isinstance(parts[0], tf.IndexedSlices):
        return parts[0]
    partial = [part for part in parts if kinds.kind(part.values) is Kind.PARTIAL]
    totals = iter(joined.sums([part.values for part in partial]) if partial else [])
    slices = [
        tf.IndexedSlices(next(totals), part.indices) if kinds.kind(part.values) is Kind.PARTIAL else part
        for part in parts
    ]
    if len(slices) == 1:
        return tf.IndexedSlices(slices[0].values, slices[0].indices, gradient.dense_shape)
    values, indices = tf.concat([each.values for each in slices], 0), tf.concat([each.indices for each in slices], 0)
    return tf.IndexedSlices(values, indices, gradient.dense_shape)
