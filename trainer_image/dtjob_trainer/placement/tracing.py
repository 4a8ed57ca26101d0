# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow asks the current trace as it makes operations, takes gradients and assigns variables."""

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from dtjob_trainer.errors import StepError
from dtjob_trainer.frameworks import graphs, hooks
from dtjob_trainer.frameworks.functions import left_unconverted
from dtjob_trainer.placement import draws, joined, kinds, rules, tracker
from dtjob_trainer.placement.kinds import OWN, PARTIAL, Kind, Mode, Placement
from dtjob_trainer.placement.tracker import Tracker

_WRITES = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_ARGUMENTS = ("dtypes", "input_types", "name", "attrs", "op_def", "compute_device")
"""Of TensorFlow's function that makes an operation, after its type and inputs."""
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""Operations that call a function of TensorFlow. For them, and where a function is mapped over rows, TensorFlow gives
all arguments without their names."""
_PLACES = "_dtjob_places"
"""An attribute that no operation has."""
Function = Callable[..., Any]


@functools.cache
def install() -> None:
    """Have TensorFlow ask, for the rest of the process."""
    hooks.put(graphs.OPERATIONS, _creating)
    hooks.put(graphs.CAPTURES, _capturing)
    hooks.put(graphs.NOTES, _noting)
    hooks.put(graphs.OWN_GRADIENTS, _recording)
    hooks.put(graphs.FUNCTION_CALLS, _calling)
    hooks.put(graphs.GRADIENT_FUNCTIONS, _finding)
    hooks.put(graphs.TAPES, _together)
    hooks.put(graphs.WATCHES, _watching)
    hooks.put(graphs.MEETINGS, _meeting)
    for name, hook in graphs.ASSIGNS.items():
        hooks.put(hook, functools.partial(_assigning, name))
    graphs.register_gradients(_differentiating)
    graphs.register_sums(_adding)


def _active(graph: Any = None) -> Tracker | None:
    """The current trace, if placements follow in this graph (that in which operations are made now)."""
    found = tracker.current()
    if found is None or found.mode is Mode.OFF:
        return None
    return found if found.graph is (graph or tf.compat.v1.get_default_graph()) else None


def _creating(own: Function) -> Function:
    def create(self: Any, op_type: str, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        found = _active(self)
        if found is None:
            return own(self, op_type, inputs, *args, **kwargs)

        if op_type in _CALLS:
            args, kwargs = (), {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        elif len(args) == len(_ARGUMENTS):
            raise StepError(
                "tf.vectorized_map, tape.jacobian and tape.batch_jacobian cannot follow the rows that replicas share; "
                "use tf.map_fn, or call them in a function for dt.over_all_rows(…)"
            )

        def make(inputs: Any, **other: Any) -> Any:
            return own(self, op_type, inputs, *args, **(kwargs | other))

        if op_type == "ReadVariableOp" and _adds_up(inputs[0]):
            return kinds.put_all(make(inputs), PARTIAL if found.mode is Mode.STEP else OWN)
        if op_type in _WRITES and found.mode is Mode.STEP:
            handle, value = inputs
            return make([handle, found.part(value) if _adds_up(handle) else found.same(value)])
        if not any(kinds.of(each) is not None for each in inputs):
            made = make(inputs, attrs=draws.alike(found, kwargs.get("attrs")))
            return draws.of_first_replica(found, made) if op_type in rules.DRAWN_BY_SEED else made
        return found.call(make, op_type, inputs, kwargs.get("attrs"))

    return create


def _adds_up(handle: Any) -> bool:
    """Whether what replicas have of a variable, given by its handle, adds up, as a metric's states do."""
    variable = graphs.variable_of(handle)
    return graphs.is_put_together_on_read(variable) and variable.aggregation is tf.VariableAggregation.SUM


def _assigning(name: str, own: Function) -> Function:
    @functools.wraps(own)
    def assign(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        found = tracker.current()
        in_step = found is not None and found.mode is Mode.STEP and not tf.distribute.in_cross_replica_context()
        if found is None or not in_step or graphs.is_put_together_on_read(self):
            return own(self, value, *args, **kwargs)
        value = tf.convert_to_tensor(value, self.dtype)
        inside = tf.compat.v1.get_default_graph() is not found.graph
        if graphs.is_mirrored(self):  # by each replica for itself, so that nothing has to be put together
            return getattr(graphs.of_this_replica(self), name)(value if inside else found.same(value), *args, **kwargs)
        if not inside:
            value = found.part(value) if self.aggregation is tf.VariableAggregation.SUM else found.same(value)
        return own(self, value, *args, **kwargs)

    return assign


def _meeting(own: Function) -> Function:
    @functools.wraps(own)
    def meet(function: Any, strategy: Any, *args: Any, **kwargs: Any) -> Any:
        found = tracker.current()
        inside = found is not None and tf.compat.v1.get_default_graph() is not found.graph
        if not inside or tf.distribute.in_cross_replica_context():
            return own(function, strategy, *args, **kwargs)
        return function(_THIS_REPLICA, *args, **kwargs)

    return meet


def _update(variable: Any, function: Any, args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
    return function(graphs.of_this_replica(variable), *args, **(kwargs or {}))


_THIS_REPLICA = SimpleNamespace(extended=SimpleNamespace(update=_update))
"""A strategy whose updates are those of one replica."""


def _capturing(own: Function) -> Function:
    def capture(self: Any, tensor: Any, name: Any = None, shape: Any = None) -> Any:
        found = tracker.current()
        if (
            found is not None
            and found.mode is Mode.STEP
            and self is not found.graph
            and kinds.of(tensor) is not None
            and getattr(tensor, "graph", None) is found.graph
        ):
            tensor = found.same(tensor)
        captured = own(self, tensor, name, shape)
        return captured if found is None else graphs.note_variable(captured, tensor)

    return capture


def _noting(own: Function) -> Function:
    def note(op_name: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        """A tape drops tensors that a gradient does not need: it keeps their placements as an attribute."""
        if tracker.current() is not None:
            places = [[kinds.of(each) for each in tensors] for tensors in (inputs, outputs)]
            attrs = (*attrs, _PLACES, places)
        own(op_name, inputs, attrs, outputs)

    return note


def _differentiating(own: Function) -> Function:
    def gradient(
        op_name: str, attrs: Any, count: int, inputs: Any, outputs: Any, given: Any, skip: Any, scope: Any
    ) -> Any:
        found = _active()

        def take(*given: Any) -> Any:
            return own(op_name, attrs, count, inputs, outputs, list(given), skip, scope)

        if found is None or _PLACES not in attrs:
            return take(*given)
        sources, results = attrs[-1]
        return _placed(found, sources, results, given, take)

    return gradient


def _finding(own: Function) -> Function:
    def find(op: Any) -> Any:
        """The function that `tf.gradients` calls for an operation."""
        function, found = own(op), _active()
        if found is None or function is None:
            return function
        sources, results = ([kinds.of(each) for each in tensors] for tensors in (op.inputs, op.outputs))

        def gradient(op: Any, *given: Any) -> Any:
            return _placed(found, sources, results, given, lambda *given: function(op, *given))

        return gradient

    return find


def _adding(own: Function) -> Function:
    def add(parts: Any) -> Any:
        found = _active()
        if found is None:
            return own(parts)
        with found.within(Mode.GRADIENT):
            return own(parts)

    return add


def _recording(own: Function) -> Function:
    def record(
        op_type: Any, output_tensors: Any, input_tensors: Any, backward_function: Any, forward_function: Any = None
    ) -> Any:
        """An operation with a gradient function of its own. In a step the function follows the rules, as it did."""
        current = tracker.current()
        if current is None:
            return own(op_type, output_tensors, input_tensors, backward_function, forward_function)
        results, sources = ([kinds.of(each) for each in tensors] for tensors in (output_tensors, input_tensors))
        plain = not graphs.is_of_function(backward_function) and all(map(_is_plain, (*sources, *results)))
        by_rules = plain and _active() is not None and current.mode is Mode.STEP

        def take(*given: Any) -> Any:
            found = _active()
            if found is None:
                return backward_function(*given)
            if by_rules:
                return _ruled(found, sources, input_tensors, given, backward_function)
            return _placed(found, sources, results, given, backward_function)

        return own(op_type, output_tensors, input_tensors, take, forward_function)

    return record


def _calling(own: Function) -> Any:
    """Replicas take turns where they put something together. Within a call of a function TensorFlow allows no other."""

    @functools.wraps(own)
    def call(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        found = _active()
        if found is not None and found.mode is Mode.STEP:
            inputs, kwargs = tf.nest.map_structure(
                lambda each: found.same(each) if isinstance(each, tf.Tensor) else each,
                (inputs, kwargs),
                expand_composites=True,
            )
        return own(self, *inputs, **kwargs)

    return left_unconverted(call)


def _together(own: Function) -> Any:
    @functools.wraps(own)
    def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
        found, current = own(self, *args, **kwargs), tracker.current()
        if current is not None:
            current.together(tf.nest.flatten(found))
        return found

    return left_unconverted(gradient)


def _watching(own: Function) -> Any:
    @functools.wraps(own)
    def watch(self: Any, tensor: Any) -> Any:
        current = tracker.current()
        if current is not None:
            for each in tf.nest.flatten(tensor):
                current.forget(each)
        return own(self, tensor)

    return left_unconverted(watch)


def _placed(
    trace: Tracker,
    inputs: Sequence[Placement | None],
    outputs: Sequence[Placement | None],
    gradients: Sequence[Any],
    take: Callable[..., Any],
) -> list[Any]:
    """The gradients of an operation by its inputs. Their placements follow from those of what the operation was given:

    - by rows: rows, the gradient of one device's loss by these rows;
    - by a partial tensor: the same on all replicas, as each part counts as much as the sum;
    - by what is the same everywhere: partial, as each replica's rows have their part in it.

    These hold for any operation of TensorFlow, so that none needs a rule for its gradient.

    - inputs, outputs: the placements of what it was given and gave.
    - gradients: those by its outputs; `take` makes gradients by the inputs of them.
    """
    with trace.within(Mode.GRADIENT):
        given = _as_they_must_be(trace, outputs, gradients)
        found = _listed(take(*given))
        by_parts = any(place is not None for place in (*inputs, *outputs))
        partial = any(kinds.kind(_values(each)) is Kind.PARTIAL for each in given)
        untouchable = {id(_values(each)) for each in given if each is not None}
        return [
            _stamped(gradient, by, by_parts or partial, untouchable)
            for gradient, by in zip(found, inputs, strict=False)
        ] + found[len(inputs) :]


def _listed(gradients: Any) -> list[Any]:
    return list(gradients) if isinstance(gradients, list | tuple) else [gradients]


def _is_plain(place: Placement | None) -> bool:
    return place is None or place.kind is Kind.PARTIAL or (place.kind is Kind.ROWS and place.blocks == 1)


def _ruled(
    trace: Tracker, inputs: Sequence[Placement | None], tensors: Sequence[Any], given: Sequence[Any], take: Function
) -> list[Any]:
    """As `_placed`, of a gradient function that may do anything with rows: it is made by the rules of a step.

    - tensors: the inputs, which have these placements.
    - given: the gradients by the outputs.
    """
    with trace.within(Mode.STEP):
        found = _listed(take(*given))
        return [
            _by_input(trace, gradient, place, tensor)
            for gradient, place, tensor in zip(found, inputs, tensors, strict=False)
        ] + found[len(inputs) :]


def _by_input(trace: Tracker, gradient: Any, place: Placement | None, tensor: Any) -> Any:
    """One device's `gradient` by a tensor with this placement, as each replica needs it."""
    if not isinstance(gradient, tf.Tensor) or not kinds.has_fractions(gradient.dtype):
        return gradient
    if place is None:
        return trace.part(gradient)
    if place.kind is Kind.PARTIAL:
        return trace.same(gradient)
    if kinds.kind(gradient) is Kind.ROWS:
        return gradient
    whole = trace.same(gradient)
    with trace.within(Mode.OFF):
        return kinds.put(joined.own_rows(whole, tf.shape(tensor)[0], *trace.around(tensor, place.units)), place)


def _as_they_must_be(trace: Tracker, outputs: Sequence[Placement | None], gradients: Sequence[Any]) -> list[Any]:
    given = [
        trace.adjoint(gradient) if output is not None and output.kind is Kind.PARTIAL else gradient
        for output, gradient in zip(outputs, gradients, strict=False)
    ]
    if any(kinds.kind(_values(each)) is Kind.PARTIAL for each in given):
        for place, (each, output) in enumerate(zip(given, outputs, strict=True)):
            plain = isinstance(each, tf.Tensor) and kinds.has_fractions(each.dtype) and kinds.of(each) is None
            if output is None and plain:
                given[place] = trace.first_only(each)
    return given


def _stamped(gradient: Any, place: Placement | None, partial: bool, untouchable: set[int]) -> Any:
    """`gradient` by a tensor that has this placement, with its own."""
    if gradient is None or not kinds.has_fractions(_values(gradient).dtype):
        return gradient
    if place is None:
        is_rows = isinstance(gradient, tf.IndexedSlices) and kinds.kind(gradient.values) is Kind.ROWS
        wanted = PARTIAL if partial and not is_rows else kinds.of(_values(gradient))
    else:
        wanted = {Kind.ROWS: place, Kind.OWN: OWN}.get(place.kind)
        if wanted is place and isinstance(gradient, tf.IndexedSlices):  # whose indices count this replica's rows
            gradient = tf.convert_to_tensor(gradient)
    if wanted == kinds.of(_values(gradient)):
        return gradient
    if id(_values(gradient)) in untouchable:
        gradient = tf.identity(gradient)
    return kinds.put(gradient, wanted)


def _values(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
