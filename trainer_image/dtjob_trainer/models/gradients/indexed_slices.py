# SPDX-License-Identifier: Apache-2.0
"""Gradients of tables in which rows are looked up: the replicas' slices become those that one device has.

Such a gradient has one slice for each look-up. Keras squares slices before it adds up those of one row, so that not
only their sum counts. A look-up of the batch's rows has its slices on one replica alone. A look-up for all rows at once
(`Embedding(arange(length))`) has the same slices on each replica: one device has their sums. A look-up of different
rows only (`tf.unique`) has one slice for a row, also where several replicas have one.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.gradients import lookups
from dtjob_trainer.models.gradients.lookups import Kind

batch_of_step: ContextVar[Any] = ContextVar("batch_of_step", default=None)
"""The tensors (in any structure) of the rows that the replica trains on whose step is being traced."""


@dataclass(frozen=True)
class _Part:
    """The slices of one look-up."""

    kind: Kind
    values: Any
    indices: Any


def summed(
    gradients: Sequence[Any],
    sum_all: Callable[[list[Any]], list[Any]],
    doubt: Callable[[int], object] = lambda place: None,
) -> list[Any]:
    """For each of `gradients` (None for none) what one device has; in a replica's step.

    - sum_all: gives the sum over all replicas of each tensor; of IndexedSlices all slices, one after the other.
    - doubt: called with the place of a gradient if the kind of one of its look-ups is not known. Its slices are then
      taken for those of rows.
    """
    parts = [_parts_of(gradient, partial(doubt, place)) for place, gradient in enumerate(gradients)]
    sums = iter(sum_all([_sent(part) for each in parts for part in each]))
    return [
        None if gradient is None else _joined(gradient, each, [next(sums) for _ in each])
        for gradient, each in zip(gradients, parts, strict=True)
    ]


def _parts_of(gradient: Any, doubt: Callable[[], object]) -> list[Any]:
    """The parts of a gradient of slices; any other one by itself. Calls `doubt` if the kind of a part is not known."""
    if gradient is None:
        return []
    if not isinstance(gradient, tf.IndexedSlices):
        return [gradient]
    found = _concatenated(gradient.indices)
    kinds = [lookups.kind_of(indices, batch_of_step.get()) for indices in found]
    if Kind.UNKNOWN in kinds:
        doubt()
    kinds = [Kind.OF_ROWS if kind is Kind.UNKNOWN else kind for kind in kinds]
    if all(kind is Kind.OF_ROWS for kind in kinds):
        return [gradient]
    values = tf.split(gradient.values, [tf.size(part) for part in found]) if len(found) > 1 else [gradient.values]
    pairs = zip(kinds, values, found, strict=True)
    return [_Part(kind, _with_rows_of(part, value), part) for kind, value, part in pairs]


def _with_rows_of(indices: Any, values: Any) -> Any:
    """`values`, which a split has left without the number of rows that is known of `indices`."""
    return tf.ensure_shape(values, [indices.shape[0], *values.shape[1:]])


def _concatenated(indices: Any) -> list[Any]:
    """The tensors of which `indices` is put together, where one table is looked up in several places."""
    if indices.op.type == "ConcatV2":
        return [part for tensor in indices.op.inputs[:-1] for part in _concatenated(tensor)]
    return [indices]


def _sent(part: Any) -> Any:
    """What replicas sum up of a part."""
    if not isinstance(part, _Part):
        return part
    return part.values if part.kind is Kind.FOR_ALL_ROWS else tf.IndexedSlices(part.values, part.indices)


def _joined(gradient: Any, parts: Sequence[Any], sums: Sequence[Any]) -> Any:
    """One gradient of the sums of its parts."""
    if not isinstance(parts[0], _Part):
        return sums[0]
    slices = [_one_device(part, total) for part, total in zip(parts, sums, strict=True)]
    values, indices = zip(*slices, strict=True)
    if len(slices) == 1:
        return tf.IndexedSlices(values[0], indices[0], gradient.dense_shape)
    return tf.IndexedSlices(tf.concat(values, 0), tf.concat(indices, 0), gradient.dense_shape)


def _one_device(part: _Part, total: Any) -> tuple[Any, Any]:
    """Values and indices of a part."""
    if part.kind is Kind.FOR_ALL_ROWS:
        return total, part.indices
    if part.kind is Kind.OF_ROWS:
        return total.values, total.indices
    indices, places = tf.unique(total.indices)
    return tf.math.unsorted_segment_sum(total.values, places, tf.size(indices)), indices
