# SPDX-License-Identifier: Apache-2.0
"""Numbers of rows, and what operations make of them. As a shape, a size is that of this replica's rows; as a number,
that of all rows."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from dtjob_trainer.frameworks import graphs
from dtjob_trainer.placement import axes, joined, kinds, rules
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
    if makes and (not of_rows or (op_type == "BroadcastTo" and of_rows == [0])):
        return kinds.put_all(make(inputs), Placement(Kind.ROWS, first.blocks, first.units))
    if op_type in rules.SIZED and of_rows:
        outputs = axes.decide(axes.Call(op_type, inputs, attrs))
        if outputs is not None:
            return kinds.put_all(make(inputs), outputs)
    if op_type == "Range" and sizes == [1] and first.blocks == 1 and first.units == 1:
        return _positions(tracker, make, inputs)
    totals = [tracker.same(each) if i in sizes else each for i, each in enumerate(inputs)]
    if of_rows:
        return tracker.by_rules(make, op_type, totals, attrs)
    return _arithmetic(tracker, make, op_type, inputs, totals, sizes)


def _positions(tracker: "Tracker", make: Make, inputs: list[Any]) -> Any:
    """`tf.range(rows)`: this replica's part of one device's."""
    with tracker.within(Mode.OFF):
        before = tf.cast(tracker.around(None, Fraction(1))[0], inputs[0].dtype)
        moved = [inputs[0] + before, inputs[1] + before, inputs[2]]
    return kinds.put_all(make(moved), ROWS)


def _arithmetic(
    tracker: "Tracker", make: Make, op_type: str, inputs: list[Any], totals: list[Any], sizes: list[int]
) -> Any:
    """A number that is made of sizes: a whole one stays a size, beside one device's; any other is one device's."""
    begin = tf.get_static_value(inputs[1]) if op_type == "StridedSlice" and sizes == [0] else None
    if begin is not None and (int(begin[0]) > 0 or int(begin[0]) < -1):  # which leaves the first entry out
        return make(inputs)
    if op_type == "Unpack":
        made = make(inputs)
        with tracker.within(Mode.OFF):
            whole = tf.unstack(totals[0])
        first = kinds.of(inputs[0])
        kinds.put(made.outputs[0], Placement(Kind.SIZE, first.blocks, first.units, whole[0]))  # type: ignore
        return made
    with tracker.within(Mode.OFF):
        whole = make(totals, name=None)
    if op_type not in rules.OF_WHOLE_NUMBERS or not all(each.dtype.is_integer for each in whole.outputs):
        return whole
    begins = 0
    if op_type in ("Pack", "ConcatV2"):  # a shape, of which only the first dimension can be rows
        begins = next((i for i, each in enumerate(inputs) if each.shape.num_elements() != 0), 0)
        if begins not in sizes:
            return whole
        inputs = [each if i == begins else total for i, (each, total) in enumerate(zip(inputs, totals, strict=True))]
    made = make(inputs)
    keeps = op_type in rules.KEEPS_SIZE and sizes[0] == begins
    place = kinds.of(inputs[sizes[0]])
    for output, total in zip(made.outputs, whole.outputs, strict=True):
        units = place.units if keeps and place is not None else None
        blocks = place.blocks if keeps and place is not None else 1
        if op_type == "Mul" and place is not None and len(sizes) == 1:
            factor = tf.get_static_value(inputs[1 - sizes[0]])
            if factor is not None and factor.ndim == 0 and place.units is not None:
                units, blocks = place.units * int(factor), place.blocks
        kinds.put(output, Placement(Kind.SIZE, blocks, units, total))
    return made
