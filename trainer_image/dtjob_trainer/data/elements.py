# SPDX-License-Identifier: Apache-2.0
"""The elements of a `tf.data.Dataset`: dense, ragged and sparse tensors, their specs and their rows."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Place
from dtjob_trainer.errors import DataError

KINDS = (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec)
"""What the parts of an element may be."""

_COPIED = 2**16
"""Elements up to which to copy all of a tensor takes less than an operation of TensorFlow."""


def check(spec: Any, argument: str, *, remote: bool) -> None:
    """Raise DataError where elements of `spec`, of data given as `argument`, cannot be trained on.

    - remote: steps run on other machines.
    """
    if isinstance(spec, tuple) and len(spec) not in (1, 2, 3):
        raise DataError(f"{argument}: elements must be x, (x, y) or (x, y, sample weights), not {len(spec)} parts")
    for part in keras.tree.flatten(spec):
        if not isinstance(part, KINDS):
            raise DataError(f"{argument}: elements must be tensors, dense, ragged or sparse, not {part}")
        if is_composite(part) and remote:
            raise DataError(cannot_leave(argument))


def cannot_leave(argument: str) -> str:
    """What is wrong with ragged and sparse tensors, given as `argument`, where steps run on other machines."""
    return (
        f"{argument}: ragged and sparse tensors cannot be handed to other machines; make them dense, as by Dataset.map "
        "with to_tensor() or tf.sparse.to_dense()"
    )


def is_composite(spec: Any) -> bool:
    """Whether `spec` is of a ragged or sparse tensor."""
    return not isinstance(spec, tf.TensorSpec)


def any_batch(spec: Any) -> Any:
    """`spec` of one part of a batched element, with a batch dimension of None."""
    shape = [None, *spec.shape[1:]]
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return type(spec)(shape, spec.dtype)


def with_rows(parts: Any, rows: int | None) -> Any:
    """Tensors or specs with this static number of rows, as Keras's steps see full batches.

    With None they stay as they are. Ragged and sparse ones always do.
    """

    def fixed(part: Any) -> Any:
        if isinstance(part, tf.TensorSpec):
            return tf.TensorSpec([rows, *part.shape[1:]], part.dtype)
        if isinstance(part, tf.Tensor):
            part.set_shape([rows, *part.shape[1:]])
        return part

    return parts if rows is None else keras.tree.map_structure(fixed, parts)


def any_batches(spec: Any, whole: tuple[bool, ...] = ()) -> Any:
    """`spec` of a batched element, each part with a batch dimension of None but those that are `whole`."""
    return _but_whole(any_batch, spec, whole)


def whole_parts(spec: Any, argument: str) -> tuple[bool, ...]:
    """By part of a batched element: whether all rows of the part belong to each row of the batch.

    Such a part says that it has another number of rows than the targets have. Empty: there is none.

    Raises DataError if parts differ and there are no targets to tell the number of rows.
    """
    sizes = [part.shape[0] if part.shape.rank else None for part in keras.tree.flatten(spec)]
    inputs = as_inputs(spec)
    targets = keras.tree.flatten(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else []
    rows = targets[0].shape[0] if targets and targets[0].shape.rank else None
    known = {size for size in sizes if size is not None}
    if not targets and len(known) > 1:
        raise DataError(
            f"{argument}: parts of an element have {', '.join(map(str, sorted(known)))} rows, and there are no targets "
            "that tell which of them is a batch; give targets, or parts of one number of rows"
        )
    whole = [rows is not None and size is not None and size != rows for size in sizes]
    return tuple(whole) if any(whole) else ()


def first_rows(inputs: Any, whole: tuple[bool, ...]) -> Any:
    """The first part that has the batch's rows; `whole` is of `whole_parts`."""
    parts = keras.tree.flatten(inputs)
    return parts[whole.index(False)] if whole else parts[0]


def share_of(inputs: Any, begin: Any, end: Any, whole: tuple[bool, ...]) -> Any:
    """Rows of all parts from `begin` up to `end`, but all rows of those that are `whole`."""
    return _but_whole(lambda part: rows_of(part, begin, end), inputs, whole)


def _but_whole(function: Callable[[Any], Any], structure: Any, whole: tuple[bool, ...]) -> Any:
    flags = iter(whole)
    return keras.tree.map_structure(lambda part: part if next(flags, False) else function(part), structure)


def as_inputs(element: Any) -> tuple[Any, ...]:
    """The parts of an element, or of its spec."""
    return element if isinstance(element, tuple) else (element,)


def made_up_row(spec: Any) -> Any:
    """One row of ones as `spec` has them; of zeros (empty texts) where they are no floats, such as numbers of words."""
    shape = [1, *(1 if size is None else size for size in spec.shape[1:])]
    row = (tf.ones if spec.dtype.is_floating else tf.zeros)(shape, spec.dtype)
    if isinstance(spec, tf.RaggedTensorSpec):
        return tf.RaggedTensor.from_tensor(row, ragged_rank=spec.ragged_rank, row_splits_dtype=spec.row_splits_dtype)
    return tf.sparse.from_dense(row) if is_composite(spec) else row


def rows_within(inputs: Any) -> Any:
    """Rows of a batch as a tensor (int32, scalar), also in the graph."""
    part = keras.tree.flatten(inputs)[0]
    if tf.executing_eagerly() and isinstance(part, tf.Tensor):
        return tf.constant(part.shape[0])  # each operation takes a tenth of a small step
    if isinstance(part, tf.RaggedTensor):
        return tf.cast(part.nrows(), tf.int32)
    return tf.cast(part.dense_shape[0], tf.int32) if isinstance(part, tf.SparseTensor) else tf.shape(part)[0]


def rows_of(part: Any, begin: Any, end: Any) -> Any:
    """Rows of `part` from `begin` up to `end`, which may be tensors."""
    if not isinstance(part, tf.SparseTensor):
        return part[begin:end]
    rank = part.shape.rank
    first = tf.concat([[tf.cast(begin, tf.int64)], tf.zeros([rank - 1], tf.int64)], 0)
    size = tf.concat([[tf.cast(end - begin, tf.int64)], part.dense_shape[1:]], 0)
    cut = tf.sparse.slice(part, first, size)
    return tf.SparseTensor(cut.indices, cut.values, tf.ensure_shape(size, [rank]))


def share_within(total: Any, place: Place) -> tuple[Any, Any, Any]:
    """`sharding.share` in the graph, of `total` rows: its begin and end, and how many rows count (int32, scalars).

    A share in which no row counts has one row all the same.
    """
    size, more = total // place.shards, total % place.shards
    low = place.shard * size + tf.minimum(place.shard, more)
    count = size + tf.cast(place.shard < more, tf.int32)
    return tf.where(count > 0, low, 0), tf.where(count > 0, low + count, 1), count


def marks_of(element: Any, rows: int | None = None) -> list[float]:
    """What tells a batch from another one: marks of x, y and weights, of a few rows of each.

    - rows: how many the batch has, if `element` is but its `rows_seen`.
    """
    parts = (*as_inputs(element), None, None)[:3]
    return [mark for part in parts for mark in _marks_of_part(part, rows)]


def rows_seen(rows: int) -> Any:
    """Which rows of a batch of so many are looked at."""
    return np.linspace(0, rows - 1, min(rows, marks.ROWS_SEEN)).astype(np.int64)


def _marks_of_part(part: Any, rows: int | None) -> list[float]:
    tensors = tf.nest.flatten(part, expand_composites=True) if part is not None else []
    if not tensors:
        return marks.of_rows(-1, [])
    seen = []
    for tensor in tensors:
        chosen = rows_seen(tensor.shape[0]) if tensor.shape.rank else ()
        if len(chosen) and tensor.shape.num_elements() <= _COPIED:
            seen.append(tensor.numpy()[chosen])
        elif len(chosen):
            with tf.device("CPU:0"):
                seen.append(tf.gather(tensor, chosen).numpy())
    return marks.of_rows(int(rows_within(part)) if rows is None else rows, seen)
