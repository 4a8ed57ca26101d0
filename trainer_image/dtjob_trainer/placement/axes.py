# SPDX-License-Identifier: Apache-2.0
"""What operations make of rows whose axes, shapes or attributes say so. Each rule gives the placements of the outputs
(one for all, or a list), or NO_RULE: then the operation is given all rows of all replicas."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import graphs
from dtjob_trainer.placement import kinds, rules
from dtjob_trainer.placement.kinds import PARTIAL, Kind, Placement

NO_RULE = object()


class Call:
    """An operation that is about to be made, of which some inputs are rows and the others the same on all replicas or
    sizes."""

    def __init__(self, op_type: str, inputs: Sequence[Any], attrs: Any) -> None:
        self.op_type, self.inputs, self.attrs = op_type, inputs, attrs or {}
        self.places = [kinds.of(each) for each in inputs]
        self.rows = [i for i, each in enumerate(self.places) if each is not None and each.kind is Kind.ROWS]

    def static(self, place: int) -> Any:
        """The value of an input, None where it is not known yet."""
        return tf.get_static_value(self.inputs[place])

    def rank(self, place: int = 0) -> int:
        """The number of dimensions of an input; -1 where it is not known."""
        rank = self.inputs[place].shape.rank
        return -1 if rank is None else rank

    def axes(self, place: int, rank: int) -> list[int] | None:
        """The axes that an input has, counted from 0; None where they are not known."""
        value = self.static(place)
        return None if value is None or rank < 0 else [int(axis) % rank for axis in np.ravel(value)]

    def bits(self, name: str) -> int:
        """An attribute that is a number."""
        return int(self.attrs[name].i) if name in self.attrs else 0

    def flag(self, *names: str) -> bool:
        """Whether one of these attributes is true."""
        return any(self.attrs[name].b for name in names if name in self.attrs)


def decide(call: Call) -> Any:
    """The placements of the outputs of `call`, or NO_RULE."""
    if call.op_type in rules.ELEMENTWISE:
        return _elementwise(call)
    if call.op_type in rules.WITHIN_ROWS:
        return _within_rows(call)
    if call.op_type in rules.REDUCTIONS:
        return _reduction(call)
    if call.op_type in rules.ALONG_AXIS:
        axes = call.axes(1 if call.op_type != "Roll" else 2, call.rank())
        return call.places[0] if call.rows == [0] and axes is not None and 0 not in axes else NO_RULE
    rule = _SPECIAL.get(call.op_type)
    return NO_RULE if rule is None else rule(call)


def _elementwise(call: Call) -> Any:
    if any(each.shape.rank is None for each in call.inputs):
        return NO_RULE
    rank = max(each.shape.rank for each in call.inputs)
    found = [call.places[i] for i in call.rows]
    first = found[0]
    assert first is not None
    for place, tensor in enumerate(call.inputs):
        if place in call.rows:
            if tensor.shape.rank != rank or call.places[place].blocks != first.blocks:  # type: ignore[union-attr]
                return NO_RULE
        elif tensor.shape.rank == rank and rank and tensor.shape[0] != 1:
            return NO_RULE  # it covers all rows
    known = [each for each in found if each is not None and each.units is not None]
    return known[0] if known else first


def _within_rows(call: Call) -> Any:
    wanted = rules.WITHIN_ROWS[call.op_type]
    if not call.rows or set(call.rows) - set(wanted):
        return NO_RULE
    if call.op_type in ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"):
        if call.rows != [0, 1] or call.places[0].blocks != call.places[1].blocks:  # type: ignore[union-attr]
            return NO_RULE
    elif any(call.rank(i) <= rules.INNER.get(call.op_type, 0) for i in call.rows):
        return NO_RULE
    return call.places[call.rows[0]]


def _reduction(call: Call) -> Any:
    axes = call.axes(1, call.rank())
    if call.rows != [0] or axes is None:
        return NO_RULE
    if 0 not in axes:
        return call.places[0]
    return PARTIAL if call.op_type in ("Sum", "Mean") else NO_RULE


def _matmul(call: Call) -> Any:
    turned = [call.flag("transpose_a", "adj_x"), call.flag("transpose_b", "adj_y")]
    ranks = [call.rank(0), call.rank(1)]
    found: Any = NO_RULE
    if ranks == [2, 2]:
        if call.rows == [0] and not turned[0]:
            found = call.places[0]
        elif call.rows == [0, 1] and turned == [True, False] and _blocks_agree(call):
            found = PARTIAL
    elif call.rows == [0, 1] and ranks[0] == ranks[1] and _blocks_agree(call):
        found = call.places[0]
    elif len(call.rows) == 1 and -1 not in ranks:
        place = call.rows[0]
        other = call.inputs[1 - place].shape
        if ranks[place] == max(ranks) > other.rank or (other.rank == ranks[place] > 2 and other[0] == 1):
            found = call.places[place]
    return found


def _blocks_agree(call: Call) -> bool:
    return len({call.places[i].blocks for i in call.rows}) == 1  # type: ignore[union-attr]


def _einsum(call: Call) -> Any:
    equation = call.attrs["equation"].s.decode()
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(call.inputs) or not _blocks_agree(call):
        return NO_RULE
    firsts = {terms[i].strip()[:1] for i in call.rows}
    if len(firsts) != 1 or firsts == {"."} or firsts == {""}:
        return NO_RULE
    letter = firsts.pop()
    others = [term for i, term in enumerate(terms) if i not in call.rows]
    if any(letter in term for term in others) or any(terms[i].count(letter) > 1 for i in call.rows):
        return NO_RULE
    if right.strip().startswith(letter):
        return call.places[call.rows[0]]
    return NO_RULE if letter in right else PARTIAL


def _expand(call: Call) -> Any:
    axes = call.axes(1, call.rank() + 1)
    return call.places[0] if call.rows == [0] and axes is not None and 0 not in axes else NO_RULE


def _squeeze(call: Call) -> Any:
    named = call.attrs["squeeze_dims"].list.i if "squeeze_dims" in call.attrs else ()
    dims = [int(axis) % call.rank() for axis in named]
    return call.places[0] if dims and 0 not in dims else NO_RULE


def _transpose(call: Call) -> Any:
    order = call.static(1)
    return call.places[0] if call.rows == [0] and order is not None and order[0] == 0 else NO_RULE


def _reshape(call: Call) -> Any:
    place, (before, shape) = call.places[0], call.inputs
    asked = graphs.shape_in(shape)
    size = kinds.of(shape)
    if place is None or not asked.rank or asked[0] is not None or not before.shape.rank:
        return NO_RULE
    if size is None and _first_entry(shape) != -1:
        return NO_RULE  # a number that nobody knows to be that of these rows
    had, inner = list(before.shape)[1:], list(asked)[1:]
    if None not in [*inner, *had]:
        wide, narrow = math.prod(had), math.prod(inner)
        units = None if place.units is None or not narrow else place.units * Fraction(wide, narrow)
        return Placement(Kind.ROWS, place.blocks, units) if wide and narrow else NO_RULE
    if size is not None and (size.units, size.blocks) == (place.units, place.blocks):
        return place
    return Placement(Kind.ROWS, place.blocks, None) if size is None or None not in inner else NO_RULE


def _first_entry(shape: Any) -> int | None:
    """The first entry of a shape, None where it is not known."""
    known = tf.get_static_value(shape)
    if known is None and shape.op.type in ("Pack", "ConcatV2"):
        known = tf.get_static_value(shape.op.inputs[0])
    return None if known is None else int(known.ravel()[0])


def _concat(call: Call) -> Any:
    axis = call.axes(len(call.inputs) - 1, call.rank())
    parts = range(len(call.inputs) - 1)
    if axis is None or [*call.rows] != [*parts]:
        return NO_RULE
    if axis != [0]:
        return call.places[0] if _blocks_agree(call) else NO_RULE
    found = [call.places[i] for i in parts]
    units = None if any(each.units is None for each in found) else sum(each.units for each in found)  # type: ignore
    if any(each.units is not None and each.units != each.blocks for each in found):  # type: ignore[union-attr]
        return NO_RULE
    return Placement(Kind.ROWS, sum(each.blocks for each in found), units)  # type: ignore


def _pack(call: Call) -> Any:
    axis = call.bits("axis") % (call.rank() + 1)
    every = len(call.rows) == len(call.inputs)
    return call.places[0] if axis and every and _blocks_agree(call) else NO_RULE


def _unpack(call: Call) -> Any:
    return call.places[0] if call.bits("axis") % call.rank() else NO_RULE


def _split(call: Call) -> Any:
    """Of `Split` (axis, value) and `SplitV` (value, sizes, axis)."""
    value, axis = (1, call.axes(0, call.rank(1))) if call.op_type == "Split" else (0, call.axes(2, call.rank(0)))
    place = call.places[value]
    if call.rows != [value] or axis is None or place is None:
        return NO_RULE
    if axis != [0]:
        return place
    if call.op_type == "Split" and place.blocks == call.bits("num_split") and place.units is not None:
        return Placement(Kind.ROWS, 1, place.units / place.blocks)
    return NO_RULE


def _strided_slice(call: Call) -> Any:
    if call.rows != [0]:
        return NO_RULE
    begin, strides = call.static(1), call.static(3)
    if strides is None or not len(strides):
        return NO_RULE
    if call.bits("ellipsis_mask") & 1:
        return call.places[0] if len(strides) <= call.rank() else NO_RULE
    if (call.bits("new_axis_mask") | call.bits("shrink_axis_mask")) & 1 or strides[0] != 1:
        return NO_RULE
    whole = call.bits("end_mask") & 1 and (call.bits("begin_mask") & 1 or (begin is not None and begin[0] == 0))
    return call.places[0] if whole else NO_RULE


def _slice(call: Call) -> Any:
    begin, size = call.static(1), call.static(2)
    whole = begin is not None and size is not None and begin[0] == 0 and size[0] == -1
    return call.places[0] if call.rows == [0] and whole else NO_RULE


def _pad(call: Call) -> Any:
    around = call.static(1)
    return call.places[0] if call.rows == [0] and around is not None and not any(around[0]) else NO_RULE


def _tile(call: Call) -> Any:
    times, place = call.static(1), call.places[0]
    if call.rows != [0] or times is None or place is None:
        return NO_RULE
    if times[0] == 1:
        return place
    if place.units is not None and place.units != place.blocks:
        return NO_RULE
    count = int(times[0])
    return Placement(Kind.ROWS, place.blocks * count, None if place.units is None else place.units * count)


def _gather(call: Call) -> Any:
    axis = call.axes(2, max(call.rank(0), 1))
    batch = call.bits("batch_dims")
    if axis is None:
        return NO_RULE
    if call.rows == [1] and not batch and axis == [0]:
        return call.places[1] if call.rank(1) else NO_RULE
    if call.rows == [0] and not batch and axis[0]:
        return call.places[0]
    if call.rows == [0, 1] and batch >= 1 and _blocks_agree(call):
        return call.places[0]
    return NO_RULE


def _one_hot(call: Call) -> Any:
    axis = call.bits("axis")
    return call.places[0] if call.rows == [0] and axis else NO_RULE


def _top_k(call: Call) -> Any:
    return call.places[0] if call.rows == [0] and call.rank() > 1 else NO_RULE


def _segment_sum(call: Call) -> Any:
    """`UnsortedSegmentSum`: a sum over rows into places of a table."""
    return PARTIAL if call.rows == [0, 1] else NO_RULE


_SPECIAL: dict[str, Callable[[Call], Any]] = {
    "MatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "Einsum": _einsum,
    "ExpandDims": _expand,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "ConcatV2": _concat,
    "Pack": _pack,
    "Unpack": _unpack,
    "Split": _split,
    "SplitV": _split,
    "StridedSlice": _strided_slice,
    "Slice": _slice,
    "Pad": _pad,
    "PadV2": _pad,
    "MirrorPad": _pad,
    "Tile": _tile,
    "GatherV2": _gather,
    "OneHot": _one_hot,
    "TopKV2": _top_k,
    "UnsortedSegmentSum": _segment_sum,
    "L2Loss": lambda call: PARTIAL,
    "EnsureShape": lambda call: call.places[0],
}
