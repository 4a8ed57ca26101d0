# SPDX-License-Identifier: Apache-2.0
"""Ragged and sparse rows. Their values are rows. The numbers that say where a value belongs are LOCAL: each replica has
its own, and the same operations give one device's numbers of what one device has, if anything needs them."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from dtjob_trainer.placement import axes, draws, joined, kinds, rules
from dtjob_trainer.placement.kinds import PARTIAL, ROWS, Kind, Make, Placement

if TYPE_CHECKING:
    from dtjob_trainer.placement.tracker import Tracker

_VALUES = Placement(Kind.ROWS, units=None)

_OF_ALL_ROWS = rules.REDUCTIONS - {"Sum", "Prod"}
"""Reductions but for those that give sizes of this replica's rows."""

_SEGMENTS = ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
"""What reductions of ragged rows are made of: values, the row of each, and the number of rows."""

_LENGTHS = ([[1], [0]], [[0], [-1]])
"""Where `splits[1:]` and `splits[:-1]` begin and end."""


def note(tracker: "Tracker", tensor: Any) -> None:
    """Place what a ragged or sparse tensor of this replica's rows consists of."""
    if isinstance(tensor, tf.RaggedTensor):
        kinds.put(tensor.flat_values, _VALUES)
        for depth, splits in enumerate(tensor.nested_row_splits):
            kinds.put(splits, Placement(Kind.LOCAL, make=partial(_splits, tracker, splits, _VALUES if depth else ROWS)))
        return
    kinds.put(tensor.values, _VALUES)
    indices = Placement(Kind.LOCAL, units=None, make=partial(_indices, tracker, tensor.indices), shared=True)
    kinds.put(tensor.indices, indices)
    kinds.put(tensor.dense_shape, Placement(Kind.LOCAL, make=partial(_shape, tracker, tensor.dense_shape)))


def _splits(tracker: "Tracker", splits: Any, place: Placement) -> Any:
    """One device's row splits. `place`: that of the lengths of what they split."""
    lengths = tracker.same(kinds.put(splits[1:] - splits[:-1], place))
    return tf.concat([tf.zeros_like(splits[:1]), tf.cumsum(lengths)], 0)


def _indices(tracker: "Tracker", indices: Any) -> Any:
    before = tf.cast(tracker.around(None, Fraction(1))[0], indices.dtype)
    return tracker.same(kinds.put(tf.concat([indices[:, :1] + before, indices[:, 1:]], 1), _VALUES))


def _shape(tracker: "Tracker", shape: Any) -> Any:
    return tf.concat([[tf.cast(tracker.shard.total, shape.dtype)], shape[1:]], 0)


def by_rules(tracker: "Tracker", make: Make, op_type: str, inputs: list[Any], attrs: Any) -> Any:
    """Make an operation of a step of which some inputs are LOCAL.

    - Of LOCAL numbers alone it gives LOCAL numbers, but for the largest of all and the like.
    - With values of this replica it gives rows, if it reduces, pads or multiplies ragged or sparse rows.
    - Anything else is given this replica's share of one device's numbers, or all rows.
    """
    found = {kinds.kind(each) for each in inputs}

    def of_one_device() -> Any:
        return make([tracker.same(each) for each in inputs], name=None, attrs=draws.alike(tracker, attrs))

    if _calls_function(attrs) or _may_meet_all_rows(op_type, inputs):
        return of_one_device()
    if Kind.ROWS in found and _finds_rows(op_type, inputs, attrs):
        return kinds.put_all(make(inputs), _VALUES)
    if Kind.ROWS in found and op_type not in rules.ELEMENTWISE:
        return of_one_device()
    if not found <= {Kind.LOCAL, Kind.SIZE, None} or any(map(_may_vary, inputs)):
        return tracker.by_rules(make, op_type, [as_rows(tracker, each) for each in inputs], attrs)
    made = make(inputs)
    if op_type in _OF_ALL_ROWS and not kinds.is_open(made.outputs[0]):
        return of_one_device()
    shared = _makes_lengths(op_type, inputs) or axes.decide(axes.Call(op_type, inputs, attrs)) not in (None, PARTIAL)
    for number, output in enumerate(made.outputs):

        def one(number: int = number) -> Any:
            return tracker.once("local", made.outputs[0], of_one_device).outputs[number]

        kinds.put(output, Placement(Kind.LOCAL, units=None, make=one, shared=shared and kinds.is_open(output)))
    return made


def as_rows(tracker: "Tracker", tensor: Any) -> Any:
    """What others than LOCAL numbers meet in place of one: this replica's share of one device's."""
    if kinds.kind(tensor) is not Kind.LOCAL:
        return tensor
    whole, place = tracker.same(tensor), kinds.of(tensor)
    if place is None or not place.shared:
        return whole

    def share() -> Any:
        found = joined.own_rows(whole, tf.shape(tensor)[0], *tracker.around(tensor, None))
        if not tracker.shard.may_be_empty:
            return found
        return tf.where(tracker.shard.examples > 0, found, tensor)  # a padding row must not divide by zero

    return kinds.put(tracker.once("share", tensor, share), _VALUES)


def _calls_function(attrs: Any) -> bool:
    """Whether an operation calls functions, such as `tf.cond`, which get one device's numbers."""
    return any(value.HasField("func") or value.list.func for value in (attrs or {}).values())


def _may_meet_all_rows(op_type: str, inputs: list[Any]) -> bool:
    """Whether another input is the same on all replicas and may be as long as all rows."""
    if any(each.shape.rank is None for each in inputs):
        return True
    rank = max(each.shape.rank for each in inputs)
    spreads = op_type in rules.ELEMENTWISE
    return any(
        kinds.of(each) is None and kinds.is_open(each) and not (spreads and each.shape.rank < rank) for each in inputs
    )


def _finds_rows(op_type: str, inputs: list[Any], attrs: Any) -> bool:
    """Whether an operation makes this replica's rows of values and of this replica's own numbers."""
    if op_type in _SEGMENTS:
        return _is_number_of_rows(inputs[2])
    if op_type == "SparseTensorDenseMatMul":
        return _is_noted(inputs[0], _indices) and kinds.of(inputs[3]) is None and not attrs["adjoint_a"].b
    return op_type == "RaggedTensorToTensor"


def _is_noted(tensor: Any, make: Callable[..., Any]) -> bool:
    """Whether `note` has placed the tensor, with this function."""
    place = kinds.of(tensor)
    return place is not None and isinstance(place.make, partial) and place.make.func is make


def _is_number_of_rows(tensor: Any) -> bool:
    """Whether a tensor is `RaggedTensor.nrows()` of a part of the batch: the length of the row splits, less 1."""
    less, operation = 0, tensor.op
    while operation.type in ("Cast", "Identity", "StridedSlice", "Sub"):
        less += int(tf.get_static_value(operation.inputs[1]) or 0) if operation.type == "Sub" else 0
        operation = operation.inputs[0].op
    return operation.type == "Shape" and less == 1 and _is_noted(operation.inputs[0], _splits)


def _makes_lengths(op_type: str, inputs: list[Any]) -> bool:
    """Whether an operation gives `splits[1:]` or `splits[:-1]`, which have an entry for each row."""
    bounds = [tf.get_static_value(each) for each in inputs[1:3]] if op_type == "StridedSlice" else []
    return _is_noted(inputs[0], _splits) and [list(each) for each in bounds if each is not None] in _LENGTHS


def _may_vary(tensor: Any) -> bool:
    """Whether a gradient may flow to what an operation is given."""
    varies = tensor.dtype is tf.resource or (kinds.has_fractions(tensor.dtype) and tf.get_static_value(tensor) is None)
    return bool(varies and kinds.of(tensor) is None)
