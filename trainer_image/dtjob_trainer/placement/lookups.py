# SPDX-License-Identifier: Apache-2.0
"""How a step that scales its gradients itself looks up rows of a table. The operations before a look-up tell it."""

import enum
from contextvars import ContextVar
from typing import Any

import numpy as np
import tensorflow as tf

batch_of_step: ContextVar[Any] = ContextVar("batch_of_step", default=None)
"""The tensors (in any structure) of the rows that the replica trains on whose step is being traced."""
_SAME_ORDER = ("Identity", "Cast", "Reshape", "ExpandDims", "Squeeze")
_READS = ("Placeholder", "ReadVariableOp", "VarHandleOp", "ResourceGather", "LookupTableFindV2")
"""Operations with a state that are the same on all replicas."""


class Lookup(enum.Enum):
    """What the indices of a look-up are."""

    OF_ROWS = enum.auto()
    """Those of each row of the batch."""
    FOR_ALL_ROWS = enum.auto()
    """The same ones for every batch."""
    DIFFERENT = enum.auto()
    """Each once, and maybe not the same ones on all replicas."""
    UNKNOWN = enum.auto()
    """The operations do not tell it."""


def kind_of(indices: Any) -> Lookup:
    """What `indices`, a tensor of the step that is being traced, are. Without `batch_of_step`: those of rows."""
    batch = batch_of_step.get()
    if batch is None or tf.executing_eagerly():
        return Lookup.OF_ROWS
    chosen = _before(indices, (*_SAME_ORDER, "Add", "AddV2", "Sub"))
    if chosen.op.type.startswith("Unique") and chosen.value_index == 0:
        return Lookup.DIFFERENT
    parts = [part for part in tf.nest.flatten(batch) if part is not None]
    found = _by_operations(indices, {each.name for each in tf.nest.flatten(parts, expand_composites=True)})
    if found is not Lookup.FOR_ALL_ROWS:
        return found
    known = (part.shape[0] for part in parts if part.shape.rank)
    rows = next((rows for rows in known if rows is not None), None)
    if rows is not None and _may_repeat(indices, rows):
        return Lookup.UNKNOWN
    # tasks may pad the rows of one step to other lengths
    return Lookup.DIFFERENT if indices.shape.rank is None or None in indices.shape[:1] else found


def _before(tensor: Any, types: tuple[str, ...]) -> Any:
    """What `tensor` is made of by operations of these types."""
    while tensor.op.type in types:
        tensor = tensor.op.inputs[0]
    return tensor


def _by_operations(indices: Any, batch: set[str]) -> Lookup:
    pending, seen, of_rows = [indices], set(), False
    while pending:
        tensor = pending.pop()
        operation = tensor.op
        if tensor.name in batch:
            of_rows = True
        elif operation.name not in seen and not _is_of_lengths(operation):
            seen.add(operation.name)
            calls = any(attribute.HasField("func") for attribute in operation.node_def.attr.values())
            if calls or (operation.op_def.is_stateful and operation.type not in _READS):
                return Lookup.UNKNOWN
            pending += operation.inputs
    return Lookup.OF_ROWS if of_rows else Lookup.FOR_ALL_ROWS


def _is_of_lengths(operation: Any) -> bool:
    """Whether this is a dimension of a tensor other than the first one, in which the rows are."""
    if operation.type != "StridedSlice" or operation.inputs[0].op.type != "Shape":
        return False
    begin = tf.get_static_value(operation.inputs[1])
    return begin is not None and int(begin[0]) > 0


def _may_repeat(indices: Any, rows: int) -> bool:
    """Whether `indices` may be the same ones for each of so many rows, row after row or side by side."""
    size = indices.shape.num_elements()
    if size is not None and size % rows:
        return False
    value = tf.get_static_value(_before(indices, _SAME_ORDER))
    if value is None:
        return True
    by_row, side_by_side = np.reshape(value, (rows, -1)), np.reshape(value, (-1, rows))
    return bool((by_row == by_row[:1]).all() or (side_by_side == side_by_side[:, :1]).all())
