# SPDX-License-Identifier: Apache-2.0
"""Gradients as an optimizer applies them: one device's. Those of all variables are summed by one exchange.

Of a table in which rows are looked up, one device has a slice for each look-up. A look-up of the batch's rows has its
slices on the replica that has these rows. One for all rows at once (`Embedding(arange(length))`) has the same slices
on each replica: one device has their sums.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.placement import joined, kinds, lookups, tracker
from dtjob_trainer.placement.kinds import OWN, PARTIAL, ROWS, Kind, Mode
from dtjob_trainer.placement.lookups import Lookup
from dtjob_trainer.placement.shard import Shard, traced
from dtjob_trainer.placement.tracker import Tracker, dense

OnUnknown = Callable[[int], object]
"""Called with the place of a gradient if nobody knows how rows are looked up in the table. Each replica's slices are
then taken for those of its rows."""


def of_one_device(gradients: Sequence[Any], on_unknown: OnUnknown = lambda place: None) -> list[Any]:
    """What one device has in place of each of `gradients` (None for none), in a replica's step.

    If the step scales its gradients itself, the sums over the replicas are one device's.
    """
    if tf.executing_eagerly():  # a program's own step, as in a callback, while the model is trained
        totals = iter(_all_reduced([each for each in gradients if each is not None]))
        return [None if each is None else next(totals) for each in gradients]
    found = tracker.current() or _of_own_scale(gradients, on_unknown)
    if tf.compat.v1.get_default_graph() is not found.graph:
        return [None if each is None else found.same(each) for each in gradients]
    with found.graph.as_default(), found.within(Mode.OFF):
        parts = [_parts(found, gradient) for gradient in gradients]
        sent = [part for each in parts for part in each if _is_summed(part)]
        totals = iter(_all_reduced(sent))
        made = [[next(totals) if _is_summed(part) else part for part in each] for each in parts]
        return [
            None if gradient is None else _one(gradient, each) for gradient, each in zip(gradients, made, strict=True)
        ]


def _of_own_scale(gradients: Sequence[Any], on_unknown: OnUnknown) -> Tracker:
    """Place the gradients of a step that scales them itself."""
    replicas, one = tf.distribute.get_strategy().num_replicas_in_sync, tf.constant(1)
    for place, gradient in enumerate(gradients):
        if isinstance(gradient, tf.IndexedSlices):
            _place_slices(gradient, place, on_unknown)
        elif gradient is not None:
            kinds.put(gradient, PARTIAL)
    return Tracker(traced.get() or Shard(replicas, one, one * replicas, may_be_empty=False))


def _place_slices(gradient: Any, place: int, on_unknown: OnUnknown) -> None:
    indices, values = _concatenated(gradient.indices), _concatenated(gradient.values)
    found = [lookups.kind_of(each) for each in indices]
    if Lookup.UNKNOWN in found:
        on_unknown(place)
    places = [{Lookup.FOR_ALL_ROWS: None, Lookup.DIFFERENT: OWN}.get(each, ROWS) for each in found]
    pairs = zip(indices, values, places, strict=True) if len(indices) == len(values) else ()
    whole = places[0] if len({*places}) == 1 else OWN
    for index, value, placement in (*pairs, (gradient.indices, gradient.values, whole)):
        kinds.put(index, placement)
        kinds.put(value, None if placement is ROWS else PARTIAL)


def _all_reduced(parts: list[Any]) -> list[Any]:
    if not parts:
        return []
    return list(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, parts))


def _parts(found: Tracker, gradient: Any) -> list[Any]:
    """A dense gradient by itself; the look-ups of which slices are put together."""
    if gradient is None:
        return []
    if not isinstance(gradient, tf.IndexedSlices):
        return [gradient if kinds.kind(gradient) in (None, Kind.PARTIAL) else found.same(gradient)]
    indices, values = _concatenated(gradient.indices), _concatenated(gradient.values)
    if len(indices) != len(values):
        indices, values = [gradient.indices], [gradient.values]
    pairs = list(zip(values, indices, strict=True))
    if any(kinds.kind(value) is Kind.PARTIAL and kinds.of(index) is not None for value, index in pairs):
        return [dense(found, gradient)]
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
