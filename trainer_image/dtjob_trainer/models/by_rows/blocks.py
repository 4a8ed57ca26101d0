# SPDX-License-Identifier: Apache-2.0
"""Tensors that hold the batch's rows several times, one block after another: views of the same rows, for example.

Rows of several replicas then have to be joined block by block. `tf.concat([view, other], 0)` makes such a tensor, and
so does `tf.tile`. Where each row's parts are side by side, as where a time axis is folded into the rows, there is one
block.
"""

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

UNKNOWN = 0
"""Nobody knows the blocks: other rows are beside those of the batch, or some of several blocks were chosen."""
_CHOOSES = ("StridedSlice", "Slice", "SplitV", "GatherV2")
"""Types of operations that may give some of the rows, nobody knows which."""
MOST_TENSORS = 3000
"""A longer way back is not followed."""


def blocks_of(tensor: Any, known: Collection[Any], counts: Mapping[Any, int]) -> int:
    """How many blocks of the batch's rows `tensor` has, whose first dimension is open; UNKNOWN if nobody can say.

    - known: keys of tensors where the way back ends; `counts` has the blocks of those that have not one.
    """
    found: dict[Any, int] = {}
    stack = [(tensor, False)]
    while stack and len(found) < MOST_TENSORS:
        each, ready = stack.pop()
        key = key_of(each)
        if key in found:
            continue
        if key in known:
            found[key] = counts.get(key, 1)
            continue
        inputs = [before for before in each.op.inputs if _has_rows(before)]
        if ready:
            found[key] = _made_of(each, {key_of(before): found.get(key_of(before), 1) for before in inputs})
        else:
            stack.append((each, True))
            stack += [(before, False) for before in inputs]
    return found.get(key_of(tensor), UNKNOWN)


def apart(value: Any, blocks: int) -> Any:
    """`value` of several blocks, with the blocks in a dimension of their own, after that of the rows."""
    if blocks == 1:
        return value
    shape = tf.shape(value)
    parts = tf.reshape(value, tf.concat([[blocks, shape[0] // blocks], shape[1:]], 0))
    return tf.ensure_shape(_swapped(parts), [None, blocks, *value.shape[1:]])


def together(value: Any, blocks: int) -> Any:
    """What `apart` has taken apart, put together again."""
    if blocks == 1:
        return value
    rest = value.shape[2:]
    shape = tf.shape(value)
    whole = tf.reshape(_swapped(value), tf.concat([[shape[0] * blocks], shape[2:]], 0))
    return tf.ensure_shape(whole, [None, *rest])


def key_of(tensor: Any) -> tuple[int, str]:
    """What tells a tensor of a graph from all others."""
    return id(tensor.graph), tensor.name


def _made_of(tensor: Any, blocks: Mapping[Any, int]) -> int:
    """The blocks of `tensor`, given those of its operation's inputs that have rows. Of a stack: of each entry."""
    operation, most = tensor.op, max(blocks.values(), default=1)
    if UNKNOWN in blocks.values() or (most > 1 and operation.type in _CHOOSES and _chooses_rows(operation)):
        return UNKNOWN
    match operation.type:
        case "ConcatV2" if tensor.shape[0] is None and _axis(operation.inputs[-1], tensor.shape.rank) in (0, None):
            joined = [blocks.get(key_of(part)) for part in operation.inputs[:-1]]
            return UNKNOWN if None in joined else sum(count or 0 for count in joined)
        case "Tile" if tensor.shape[0] is None:
            times = _static(operation.inputs[1])
            return most if times is None else most * int(times[0])
        case "Reshape":
            return _reshaped(operation.inputs[0], tensor, most)
        case "Split" if _axis(operation.inputs[0], tensor.shape.rank) in (0, None):
            return _divided(most, len(operation.outputs)) if tensor.shape[0] is None else most
    return most


def _reshaped(before: Any, after: Any, blocks: int) -> int:
    """The blocks of `after`, which is `before` in another shape."""
    entries = [int(each.shape[0]) if _is_stack(each) else 1 for each in (before, after)]
    return _divided(blocks * entries[0], entries[1])


def _divided(blocks: int, parts: int) -> int:
    return blocks // parts if blocks % parts == 0 else UNKNOWN


def _chooses_rows(operation: Any) -> bool:
    """Whether `operation`, of the _CHOOSES, gives other rows than all of those that it is given."""
    value, *others = operation.inputs
    if _is_stack(value):
        return False
    match operation.type:
        case "StridedSlice":
            masks = operation.get_attr("begin_mask") & operation.get_attr("end_mask")
            strides = _static(others[2])
            whole = masks & 1 and strides is not None and strides[0] == 1
            return not (whole or operation.get_attr("ellipsis_mask") & 1 or operation.get_attr("new_axis_mask") & 1)
        case "Slice":
            begin, size = map(_static, others)
            return begin is None or size is None or begin[0] != 0 or size[0] != -1
        case "SplitV":
            return _axis(others[1], value.shape.rank) in (0, None)
    return value.shape[0] is None and _axis(others[1], value.shape.rank) in (0, None)  # GatherV2


def _axis(tensor: Any, rank: int) -> int | None:
    """The number of the dimension in `tensor`; None if it is not known."""
    axis = _static(tensor)
    return None if axis is None else int(axis) % rank


def _has_rows(tensor: Any) -> bool:
    shape = tensor.shape
    return (
        tensor.dtype not in (tf.resource, tf.variant) and bool(shape.rank) and (shape[0] is None or _is_stack(tensor))
    )


def _is_stack(tensor: Any) -> bool:
    """Whether `tensor` has rows in its second dimension, as what `tf.stack` makes of several views."""
    shape = tensor.shape
    return bool(shape.rank and shape.rank > 1 and shape[0] is not None and shape[0] > 1 and shape[1] is None)


def _static(tensor: Any) -> Any:
    return tf.get_static_value(tensor)


def _swapped(value: Any) -> Any:
    """`value` with its first two dimensions in the place of each other."""
    return tf.transpose(value, [1, 0, *range(2, value.shape.rank)])
