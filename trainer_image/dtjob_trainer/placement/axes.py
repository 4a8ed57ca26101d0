# SPDX-License-Identifier: Apache-2.0
"""What operations make of rows whose axes, shapes or attributes say so. Each rule gives the placements of the outputs
(one for all, or a list), or None: then the operation is given all rows of all replicas."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import graphs
from dtjob_trainer.placement import kinds, rules
from dtjob_trainer.placement.kinds import PARTIAL, Kind, Placement


class Call:
    """An operation that is about to be made, of which some inputs are rows and the others the same on all replicas or
    sizes."""

    def __init__(self, op_type: str, inputs: Sequence[Any], attrs: Any) -> None:
        self.op_type, self.inputs, self.attrs = op_type, inputs, attrs or {}
        placed = {i: place for i, each in enumerate(inputs) if (place := kinds.of(each)) is not None}
        self.places = {i: place for i, place in placed.items() if place.kind is Kind.ROWS or place.shared}
        """The placements of the inputs that are rows."""
        self.rows = [*self.places]

    @property
    def blocks_agree(self) -> bool:
        """Whether all inputs that are rows run equally often through the batch."""
        return len({place.blocks for place in self.places.values()}) == 1

    def first(self, place: int) -> Any:
        """The first entry of an input, None where it is not known yet."""
        value = tf.get_static_value(self.inputs[place])
        return value[0] if value is not None and len(value) else None

    def rank(self, place: int = 0) -> int:
        """The number of dimensions of an input; -1 where it is not known."""
        rank = self.inputs[place].shape.rank
        return -1 if rank is None else rank

    def axes(self, place: int, rank: int) -> list[int] | None:
        """The axes of a tensor of this rank that an input has, counted from 0; None where they are not known."""
        value = tf.get_static_value(self.inputs[place])
        return None if value is None or rank < 0 else [int(axis) % rank for axis in np.ravel(value)]

    def spares_rows(self, place: int, more: int = 0) -> bool:
        """Whether none of the axes that an input has is that of the rows. False where they are not known.

        - more: how many dimensions the output has beyond those of the first input.
        """
        axes = self.axes(place, self.rank() + more)
        return axes is not None and 0 not in axes

    def bits(self, name: str) -> int:
        """An attribute that is a number."""
        return int(self.attrs[name].i) if name in self.attrs else 0

    def flag(self, *names: str) -> bool:
        """Whether one of these attributes is true."""
        return any(self.attrs[name].b for name in names if name in self.attrs)


Rule = Callable[[Call], Any]


def decide(call: Call) -> Any:
    """The placements of the outputs of `call`, or None."""
    if call.op_type in _KEEP_ROWS:
        return call.places[0] if call.rows == [0] and _KEEP_ROWS[call.op_type](call) else None
    rule = _RULES.get(call.op_type)
    return None if rule is None else rule(call)


def _squeezes_others(call: Call) -> bool:
    named = call.attrs["squeeze_dims"].list.i if "squeeze_dims" in call.attrs else ()
    dims = [int(axis) % call.rank() for axis in named]
    return bool(dims) and 0 not in dims


def _slices_others(call: Call) -> bool:
    if (step := call.first(3)) is None:
        return False
    if call.bits("ellipsis_mask") & 1:
        return bool(call.inputs[3].shape[0] <= call.rank())
    if (call.bits("new_axis_mask") | call.bits("shrink_axis_mask")) & 1 or step != 1:
        return False
    return bool(call.bits("end_mask") & 1 and (call.bits("begin_mask") & 1 or call.first(1) == 0))


def _pads_others(call: Call) -> bool:
    around = call.first(1)
    return around is not None and not any(around)


_KEEP_ROWS: dict[str, Callable[[Call], Any]] = {
    "Cumsum": lambda call: call.spares_rows(1),
    "Cumprod": lambda call: call.spares_rows(1),
    "CumulativeLogsumexp": lambda call: call.spares_rows(1),
    "ReverseV2": lambda call: call.spares_rows(1),
    "Roll": lambda call: call.spares_rows(2),
    "ExpandDims": lambda call: call.spares_rows(1, more=1),
    "Squeeze": _squeezes_others,
    "Transpose": lambda call: call.first(1) == 0,
    "Unpack": lambda call: call.bits("axis") % call.rank(),
    "StridedSlice": _slices_others,
    "Slice": lambda call: call.first(1) == 0 and call.first(2) == -1,
    "Pad": _pads_others,
    "PadV2": _pads_others,
    "MirrorPad": _pads_others,
    "OneHot": lambda call: call.bits("axis"),
    "TopKV2": lambda call: call.rank() > 1,
    "EnsureShape": lambda call: True,
}
"""Operations that give rows if their first input alone is rows, and the function says so."""


def _elementwise(call: Call) -> Any:
    if any(each.shape.rank is None for each in call.inputs):
        return None
    rank = max(each.shape.rank for each in call.inputs)
    for place, tensor in enumerate(call.inputs):
        if place in call.rows:
            fits = tensor.shape.rank == rank
        else:  # it must not cover all rows
            fits = tensor.shape.rank < rank or not rank or tensor.shape[0] == 1
        if not fits:
            return None
    found = list(call.places.values())
    return next((each for each in found if each.units is not None), found[0]) if call.blocks_agree else None


def _within_rows(call: Call) -> Any:
    wanted = rules.WITHIN_ROWS[call.op_type]
    if not call.rows or set(call.rows) - set(wanted):
        return None
    if call.op_type in rules.CROSS_ENTROPIES:
        fits = call.rows == [0, 1] and call.blocks_agree
    else:
        fits = all(call.rank(i) > rules.INNER.get(call.op_type, 0) for i in call.rows)
    return call.places[call.rows[0]] if fits else None


def _reduction(call: Call) -> Any:
    axes = call.axes(1, call.rank())
    if call.rows != [0] or axes is None:
        return None
    if 0 not in axes:
        return call.places[0]
    divides = call.op_type == "Mean" and not kinds.has_fractions(call.inputs[0].dtype)
    return PARTIAL if call.op_type in ("Sum", "Mean") and not divides else None


def _matmul(call: Call) -> Any:
    turned = [call.flag("transpose_a", "adj_x"), call.flag("transpose_b", "adj_y")]
    ranks = [call.rank(0), call.rank(1)]
    found = None
    if ranks == [2, 2]:
        if call.rows == [0] and not turned[0]:
            found = call.places[0]
        elif call.rows == [0, 1] and turned == [True, False] and call.blocks_agree:
            found = PARTIAL
    elif call.rows == [0, 1] and ranks[0] == ranks[1] and call.blocks_agree:
        found = call.places[0]
    elif len(call.rows) == 1 and -1 not in ranks:
        place = call.rows[0]
        other = call.inputs[1 - place].shape
        if ranks[place] == max(ranks) > other.rank or (other.rank == ranks[place] > 2 and other[0] == 1):
            found = call.places[place]
    return found


def _einsum(call: Call) -> Any:
    left, _, right = call.attrs["equation"].s.decode().partition("->")
    terms = left.split(",")
    if len(terms) != len(call.inputs) or not call.blocks_agree:
        return None
    firsts = {terms[i].strip()[:1] for i in call.rows}
    if len(firsts) != 1 or firsts <= {".", ""}:
        return None
    letter = firsts.pop()
    if any(term.count(letter) > (i in call.rows) for i, term in enumerate(terms)):
        return None
    if right.strip().startswith(letter):
        return call.places[call.rows[0]]
    return None if letter in right else PARTIAL


def _reshape(call: Call) -> Any:
    """No entry of the first dimension may be of several rows, or of several blocks."""
    place, (before, shape) = call.places.get(0), call.inputs
    asked, size = graphs.shape_in(shape), kinds.of(shape)
    if place is None or not asked.rank or asked[0] is not None or not before.shape.rank:
        return None
    had, inner = list(before.shape)[1:], list(asked)[1:]
    wide, narrow = (math.prod(each for each in sizes if each is not None) for sizes in (had, inner))
    if not wide or not narrow or (size is None and _first_entry(shape) != -1):
        return None  # a number that nobody knows to be that of these rows
    if None not in [*inner, *had]:
        units = None if place.units is None else place.units * Fraction(wide, narrow)
        divides = wide % narrow == 0 if units is None else (units / place.blocks).denominator == 1
        return Placement(Kind.ROWS, place.blocks, units) if divides else None
    if size is not None and (size.units, size.blocks) == (place.units, place.blocks):
        return place
    if None in inner:
        divides = size is None and place.blocks == 1 and inner.count(None) <= had.count(None)
    else:
        divides = wide % narrow == 0
    return Placement(Kind.ROWS, place.blocks, None) if divides else None


def _first_entry(shape: Any) -> int | None:
    """The first entry of a shape, None where it is not known."""
    known = tf.get_static_value(shape)
    if known is None and shape.op.type in ("Pack", "ConcatV2"):
        known = tf.get_static_value(shape.op.inputs[0])
    return None if known is None else int(known.ravel()[0])


def _concat(call: Call) -> Any:
    axis = call.axes(len(call.inputs) - 1, call.rank())
    if axis is None or len(call.rows) != len(call.inputs) - 1:
        return None
    if axis != [0]:
        return call.places[0] if call.blocks_agree else None
    found = list(call.places.values())
    if any(each.units != each.blocks for each in found):  # blocks are equally long
        return None
    blocks = sum(each.blocks for each in found)
    return Placement(Kind.ROWS, blocks, Fraction(blocks))


def _pack(call: Call) -> Any:
    every = len(call.rows) == len(call.inputs)
    return call.places[0] if call.bits("axis") % (call.rank() + 1) and every and call.blocks_agree else None


def _split(call: Call) -> Any:
    """Of `Split` (axis, value) and `SplitV` (value, sizes, axis)."""
    value, axis = (1, call.axes(0, call.rank(1))) if call.op_type == "Split" else (0, call.axes(2, call.rank(0)))
    if call.rows != [value] or axis is None:
        return None
    place = call.places[value]
    if axis != [0]:
        return place
    if call.op_type == "Split" and place.blocks == call.bits("num_split") and place.units is not None:
        return Placement(Kind.ROWS, 1, place.units / place.blocks)
    return None


def _tile(call: Call) -> Any:
    times = call.first(1)
    if call.rows != [0] or times is None:
        return None
    place, count = call.places[0], int(times)
    if count == 1:
        return place
    if place.units not in (None, place.blocks):
        return None
    return Placement(Kind.ROWS, place.blocks * count, None if place.units is None else place.units * count)


def _gather(call: Call) -> Any:
    axis, batch = call.axes(2, max(call.rank(0), 1)), call.bits("batch_dims")
    if axis is None:
        return None
    if call.rows == [1]:
        return call.places[1] if not batch and axis == [0] and call.rank(1) else None
    if call.rows == [0]:
        return call.places[0] if not batch and axis[0] else None
    return call.places[0] if batch > 0 and call.blocks_agree else None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(rules.ELEMENTWISE, _elementwise),
    **dict.fromkeys(rules.WITHIN_ROWS, _within_rows),
    **dict.fromkeys(rules.REDUCTIONS, _reduction),
    "MatMul": _matmul,
    "BatchMatMulV2": _matmul,
    "Einsum": _einsum,
    "Reshape": _reshape,
    "ConcatV2": _concat,
    "Pack": _pack,
    "Split": _split,
    "SplitV": _split,
    "Tile": _tile,
    "GatherV2": _gather,
    "UnsortedSegmentSum": lambda call: PARTIAL if call.rows == [0, 1] else None,  # into places of a table
    "L2Loss": lambda call: PARTIAL,
}
