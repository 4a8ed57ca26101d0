# SPDX-License-Identifier: Apache-2.0
"""What a look-up in a table depends on: found out with made-up batches, as nothing says so.

Only the operations that give the indices are computed, apart from the step that is being traced.
"""

import enum
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

MOST_OPERATIONS = 2000
"""Operations up to which a look-up is tried."""
WIDTH = 4
"""Made-up size of dimensions that are open, other than that of the rows."""
TRIES = ((2, 0), (3, 0), (2, 1), (3, 1))
"""Rows, and the number in all of them, of each made-up batch."""
MOST_NUMBERS = 1 << 24
"""Numbers up to which a made-up batch is computed."""
_OF_SHAPES = ("Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike")
"""Operations in which only the shape of what they are given counts."""
_READS = ("Placeholder", "ReadVariableOp", "VarHandleOp", "ResourceGather", "LookupTableFindV2")
"""Operations with a state that are the same on all replicas."""


class Kind(enum.Enum):
    """What the indices of a look-up are."""

    OF_ROWS = enum.auto()
    """Those of each row of the batch."""
    FOR_ALL_ROWS = enum.auto()
    """The same ones for every batch."""
    DIFFERENT = enum.auto()
    """Those of the batch's rows, each once."""
    UNKNOWN = enum.auto()
    """It could not be found out."""


def kind_of(indices: Any, batch: Any) -> Kind:
    """The kind of a look-up; `indices` is a tensor of the graph that is being traced.

    - batch: the tensors (in any structure) of the rows that a replica has there; None: not known.
    """
    if batch is None or tf.executing_eagerly():
        return Kind.OF_ROWS
    parts = [part for part in keras.tree.flatten(batch) if part is not None]
    rows = _rows_of(parts)
    try:
        with tf.init_scope():
            found = _tried(indices, parts, TRIES if rows is None else ((rows, 0), (rows, 0), (rows, 1), (rows, 1)))
    except Exception:  # any operation may refuse made-up numbers
        return _kind_by_operations(indices, {tensor.name for part in parts for _, tensor in _tensors(part)})
    few_zeros, many_zeros, few_ones, many_ones = found
    fixed = few_zeros.size and _same(few_zeros, many_zeros) and _same(few_ones, many_ones)
    once = np.unique(few_zeros).size == few_zeros.size and np.unique(few_ones).size == few_ones.size
    if fixed and _same(few_zeros, few_ones):
        if rows is not None and _repeats(few_zeros, rows):
            return Kind.UNKNOWN
        # tasks may pad the rows of one step to other lengths
        return Kind.DIFFERENT if once and indices.shape[0] is None else Kind.FOR_ALL_ROWS
    return Kind.DIFFERENT if fixed and once and rows != 1 else Kind.OF_ROWS


def _rows_of(parts: Sequence[Any]) -> int | None:
    """The number of rows of a batch, where it is the same in every step; else None."""
    known = (part.shape[0] for part in parts if part.shape.rank)
    return next((rows for rows in known if rows is not None), None)


def _repeats(indices: npt.NDArray[Any], rows: int) -> bool:
    """Whether fixed `indices` may be the same ones for each of so many rows, row after row or side by side."""
    if indices.size % rows:
        return False
    by_row, side_by_side = indices.reshape(rows, -1), indices.reshape(-1, rows)
    return bool((by_row == by_row[:1]).all() or (side_by_side == side_by_side[:, :1]).all())


def _kind_by_operations(indices: Any, sources: set[str]) -> Kind:
    """The kind of a look-up that cannot be tried, as far as the operations before it tell."""
    pending, seen, of_rows, of_shapes = [indices], set(), False, False
    while pending:
        tensor = pending.pop()
        if tensor.name in sources:
            of_rows = True
            continue
        operation = tensor.op
        if operation.name in seen:
            continue
        seen.add(operation.name)
        definition = operation.op_def
        if _calls_functions(operation.node_def) or (definition.is_stateful and operation.type not in _READS):
            return Kind.UNKNOWN
        if operation.type in _OF_SHAPES:
            of_shapes = True
        else:
            pending += operation.inputs
    if of_rows:
        return Kind.OF_ROWS
    return Kind.UNKNOWN if of_shapes else Kind.FOR_ALL_ROWS


def _calls_functions(node: Any) -> bool:
    return any(attribute.HasField("func") for attribute in node.attr.values())


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(np.array_equal(one, other))


def _tried(indices: Any, batch: Sequence[Any], tries: Sequence[tuple[int, int]]) -> list[npt.NDArray[Any]]:
    """What `indices` is for each made-up batch. Raises ValueError where that does not depend on the batch alone."""
    sources = {part.name: (number, place) for number, whole in enumerate(batch) for place, part in _tensors(whole)}
    definition, used = _definition(indices, set(sources))
    with tf.Graph().as_default():
        results = []
        for rows, content in tries:
            made_up = [dict(_tensors(_made_up(whole, rows, content))) for whole in batch]
            inputs = {name: made_up[number][place] for name, (number, place) in sources.items() if name in used}
            results += tf.import_graph_def(definition, inputs, [indices.name])
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
        with tf.compat.v1.Session(config=config) as session:
            found: list[npt.NDArray[Any]] = session.run(results)
            return found


def _tensors(part: Any) -> list[tuple[int, Any]]:
    return list(enumerate(tf.nest.flatten(part, expand_composites=True)))


def _definition(result: Any, sources: set[str]) -> tuple[Any, set[str]]:
    """The operations that give `result` of tensors with these names, without their devices; and which names they use.

    Raises ValueError where they use anything else that is known only while a step runs.
    """
    graph, definition, used = result.graph, tf.compat.v1.GraphDef(), set()
    pending, seen, functions = [result.op], set(), False
    while pending:
        operation = pending.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.type in ("Placeholder", "VarHandleOp") or len(seen) > MOST_OPERATIONS:
            raise ValueError(f"{operation.name} is not made of the batch")
        node = definition.node.add()
        node.CopyFrom(operation.node_def)
        node.device = ""
        node.attr.pop("_class", None)  # with which others it would be placed
        kept = [name for name in node.input if not name.startswith("^")]
        del node.input[:]
        node.input.extend(kept)
        functions |= _calls_functions(node)
        for tensor in operation.inputs:
            if tensor.name in sources:
                used.add(tensor.name)
            else:
                pending.append(tensor.op)
    whole = graph.as_graph_def() if functions else None
    definition.versions.CopyFrom(graph.graph_def_versions)
    if whole is not None:
        definition.library.CopyFrom(whole.library)
    return definition, used


def _made_up(part: Any, rows: int, content: int) -> Any:
    """A tensor of the kind of `part` with that many rows, all of whose numbers are `content`."""
    if isinstance(part, tf.RaggedTensor):
        inner = [size or WIDTH for size in part.flat_values.shape[1:]]
        shape = [rows, *[WIDTH] * part.ragged_rank, *inner]
        whole = tf.RaggedTensor.from_tensor(_filled(shape, part.dtype, content), ragged_rank=part.ragged_rank)
        return whole.with_row_splits_dtype(part.row_splits.dtype)
    shape = [rows, *(size or WIDTH for size in part.shape[1:])]
    if isinstance(part, tf.SparseTensor):
        everywhere = np.argwhere(np.ones(shape))
        return tf.SparseTensor(everywhere, _filled([len(everywhere)], part.dtype, content), shape)
    return _filled(shape, part.dtype, content)


def _filled(shape: Sequence[int], dtype: Any, content: int) -> Any:
    if math.prod(shape) > MOST_NUMBERS:
        raise ValueError("the made-up batch is too large")
    return tf.fill(shape, str(content)) if dtype == tf.string else tf.cast(tf.fill(shape, content), dtype)
