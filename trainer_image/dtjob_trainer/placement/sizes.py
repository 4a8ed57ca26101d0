# SPDX-License-Identifier: Apache-2.0
"""Numbers of rows, and what operations make of them. As a shape, a size is that of this replica's rows; as a number,
that of all rows."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import graphs
from dtjob_trainer.placement import axes, draws, joined, kinds, rules
from dtjob_trainer.placement.kinds import ROWS, Kind, Make, Mode, Placement

if TYPE_CHECKING:
    from dtjob_trainer.placement.tracker import Tracker


def of_rows(tracker: "Tracker", make: Make, op_type: str, inputs: list[Any]) -> Any:
    """`Shape`, `ShapeN` and `Size` of rows."""
    made = make(inputs)
    for tensor, output in zip(inputs, made.outputs, strict=True):
        place = kinds.of(tensor)
        if place is None or place.kind is not Kind.ROWS:
            continue
        with tracker.within(Mode.OFF):
            total = tf.cast(_all_entries(tracker, tensor, place), output.dtype)
            if op_type == "Size":
                rest = tf.reduce_prod(tf.shape(tensor, output.dtype)[1:])
                whole = total * rest
            else:
                whole = tf.concat([[total], output[1:]], 0)
                static = tf.get_static_value(whole)
                whole = whole if static is None else tf.constant(static, output.dtype)
        units = None if op_type == "Size" and tensor.shape.rank != 1 else place.units
        kinds.put(output, Placement(Kind.SIZE, place.blocks, units, whole))
    return made


def _all_entries(tracker: "Tracker", tensor: Any, place: Placement) -> Any:
    if place.units is None and not tracker.shard.may_be_empty:
        return tracker.once("entries", tensor, lambda: joined.sums([tf.shape(tensor)[0]])[0])
    return tracker.total_rows(tensor, place)[1]


def of_sizes(tracker: "Tracker", make: Make, op_type: str, inputs: list[Any], attrs: Any) -> Any:
    """Make an operation that is given sizes."""
    sizes = [i for i, each in enumerate(inputs) if kinds.kind(each) is Kind.SIZE]
    inputs = [tracker.same(each) if kinds.kind(each) is Kind.PARTIAL else each for each in inputs]
    first = kinds.of(inputs[sizes[0]])
    assert first is not None
    of_rows = [i for i, each in enumerate(inputs) if kinds.kind(each) is Kind.ROWS]
    is_shape = op_type in rules.SHAPES and sizes == [rules.SHAPES[op_type]]
    widens = op_type == "Tile" and sizes == [1] and bool(inputs[0].shape.rank) and inputs[0].shape[0] == 1
    shape = graphs.shape_in(inputs[sizes[0]]) if is_shape or widens else tf.TensorShape(None)
    makes = bool(shape.rank) and shape[0] is None
    if makes and op_type == "BroadcastTo":
        rank = inputs[0].shape.rank
        if of_rows == [0] and rank == shape.rank:
            return kinds.put_all(make(inputs), kinds.of(inputs[0]))
        makes = rank is not None and (rank < shape.rank or inputs[0].shape[0] == 1)  # it does not cover all rows
    if makes and not of_rows:
        drawn = op_type in rules.DRAWN
        made = draws.apart(tracker, make, op_type, inputs, attrs) if drawn else make(inputs)
        return kinds.put_all(made, Placement(Kind.ROWS, first.blocks, first.units))
    if op_type in rules.SIZED and of_rows:
        outputs = axes.decide(axes.Call(op_type, inputs, attrs))
        if outputs is not None:
            return kinds.put_all(make(inputs), outputs)
    counts = op_type == "Range" and [tf.get_static_value(each) for each in inputs[::2]] == [0, 1]
    if counts and sizes == [1] and first.blocks == 1 and first.units == 1:
        return _positions(tracker, make, inputs)
    totals = [tracker.same(each) if i in sizes else each for i, each in enumerate(inputs)]
    if of_rows:
        return tracker.by_rules(make, op_type, totals, attrs)
    return _arithmetic(tracker, make, axes.Call(op_type, inputs, attrs), totals, sizes)


def _positions(tracker: "Tracker", make: Make, inputs: list[Any]) -> Any:
    """`tf.range(rows)`: this replica's part of one device's."""
    with tracker.within(Mode.OFF):
        before = tf.cast(tracker.around(None, Fraction(1))[0], inputs[0].dtype)
        moved = [inputs[0] + before, inputs[1] + before, inputs[2]]
    return kinds.put_all(make(moved), ROWS)


def _arithmetic(tracker: "Tracker", make: Make, call: axes.Call, totals: list[Any], sizes: list[int]) -> Any:
    """A number that is made of sizes. It stays a size if what the replicas have adds up to what one device has, and, in
    a vector, if it is the first entry. Any other is one device's."""
    op_type, inputs = call.op_type, list(call.inputs)
    if op_type == "Unpack":
        made = make(inputs)
        with tracker.within(Mode.OFF):
            whole = tf.unstack(totals[0])
        first = kinds.of(inputs[0])
        kinds.put(made.outputs[0], Placement(Kind.SIZE, first.blocks, first.units, whole[0]))  # type: ignore
        return made
    taken = _taken(call) if op_type in rules.TAKES and sizes == [0] else None
    if taken is not None and 0 not in taken:
        return make(inputs)  # entries that are alike everywhere
    attrs = draws.alike(tracker, call.attrs or None)
    with tracker.within(Mode.OFF):
        whole = make(totals, name=None, attrs=attrs)
    begins = 0
    if op_type in rules.JOINS:  # a shape, of which only the first dimension can be rows
        begins = next((i for i, each in enumerate(inputs) if each.shape.num_elements() != 0), 0)
        inputs = [each if i == begins else total for i, (each, total) in enumerate(zip(inputs, totals, strict=True))]
        stays = begins in sizes
    elif op_type in rules.TAKES:
        stays = taken is not None and taken[0] == 0 and 0 not in taken[1:]
    else:
        alike = op_type == "Mul" and len(sizes) == 1 and _rank(inputs[1 - sizes[0]]) <= _rank(inputs[sizes[0]])
        stays = alike or op_type in rules.KEEPS_SIZE or op_type == "Prod"
    place = kinds.of(inputs[begins if op_type in rules.JOINS else sizes[0]])
    if not stays or place is None or not all(each.dtype.is_integer for each in whole.outputs):
        return whole
    units, blocks = place.units, place.blocks
    if op_type in ("Mul", "Prod"):
        factor = tf.get_static_value(inputs[1 - sizes[0]]) if op_type == "Mul" else None
        known = units is not None and factor is not None and factor.ndim == 0
        units, blocks = (units * int(factor), blocks) if known else (None, 1)  # type: ignore
    made = make(inputs)
    for output, total in zip(made.outputs, whole.outputs, strict=True):
        kinds.put(output, Placement(Kind.SIZE, blocks, units, total))
    return made


def _rank(tensor: Any) -> int:
    return -1 if tensor.shape.rank is None else int(tensor.shape.rank)


def _taken(call: axes.Call) -> list[int] | None:
    """Which entries of a vector an operation of `rules.TAKES` gives. None if this is not known."""
    count = call.inputs[0].shape.num_elements()
    given = [tf.get_static_value(each) for each in call.inputs[1:]]
    if count is None or any(value is None for value in given):
        return None
    entries = np.arange(count)
    try:
        if call.op_type == "GatherV2":
            taken = entries[given[0]]
        elif call.op_type == "Slice":
            begin, size = (int(value[0]) for value in given)
            taken = entries[begin:][: size if size >= 0 else None]
        elif call.bits("ellipsis_mask") or call.bits("new_axis_mask"):
            return None
        else:
            begin, end, stride = (int(value[0]) for value in given)
            first, last = (None if call.bits("begin_mask") else begin), (None if call.bits("end_mask") else end)
            taken = entries[begin] if call.bits("shrink_axis_mask") else entries[first:last:stride]
    except IndexError:  # TensorFlow says what is wrong
        return None
    return [int(entry) for entry in np.ravel(taken)]
