# SPDX-License-Identifier: Apache-2.0
"""One replica's trace: gives each tensor its placement as its operation is made, and replaces inputs where it must.

Row by row stays rows. A reduction or contraction over rows gives partial values, and what is linear keeps them. Any
other operation is given the sum over the replicas, whose gradient is the identity. A number of rows is that of the
global batch. An operation without a rule is given the rows of all replicas, and computes alike everywhere.

Layers of Keras itself are row by row as a whole (`Mode.LAYER`): each replica computes them of its own rows, also the
statistics of batch normalization.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

import tensorflow as tf

from dtjob_trainer.errors import TrainerError
from dtjob_trainer.frameworks import graphs
from dtjob_trainer.placement import axes, draws, joined, kinds, ragged, rules, sizes
from dtjob_trainer.placement.kinds import OWN, PARTIAL, ROWS, Kind, Make, Mode, Placement
from dtjob_trainer.placement.shard import Shard, building, setting


class Tracker:
    """What is known of one replica's step while it is traced."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.graph = tf.compat.v1.get_default_graph()
        self.mode = Mode.STEP
        self._made: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._groups: dict[int, list[Any]] = {}
        self._before: Any = None
        self.seeds: dict[tuple[int, int], int] = {}
        """The numbers of seeds, by TensorFlow's two seeds of an operation: see `draws.alike`."""

    @contextlib.contextmanager
    def within(self, mode: Mode) -> Iterator[None]:
        """While this lasts, placements follow in this way."""
        before, self.mode = self.mode, mode
        try:
            yield
        finally:
            self.mode = before

    def note_rows(self, structure: Any) -> None:
        """Place the tensors of `structure` with an open first dimension, and what ragged and sparse ones consist of."""
        for tensor in tf.nest.flatten(structure):
            if isinstance(tensor, tf.RaggedTensor | tf.SparseTensor):
                ragged.note(self, tensor)
            elif isinstance(tensor, tf.Tensor) and kinds.is_open(tensor):
                kinds.put(tensor, ROWS)

    # what replicas make together

    def same(self, tensor: Any) -> Any:
        """What one device has in place of `tensor`: the same on all replicas."""
        if isinstance(tensor, tf.IndexedSlices):
            is_same = kinds.of(tensor.values) is None and kinds.of(tensor.indices) is None
            return tensor if is_same else self.same(dense(self, tensor))
        place = kinds.of(tensor)
        return tensor if place is None else self._one_device(tensor, place)

    def _one_device(self, tensor: Any, place: Placement) -> Any:
        match place.kind:
            case Kind.SIZE:
                return place.total
            case Kind.PARTIAL:
                return self._sum(tensor)
            case Kind.LATER | Kind.LOCAL if place.make is not None:
                return self.once("later", tensor, place.make)
            case Kind.ROWS:
                return self.once("rows", tensor, lambda: self._joined(tensor, place))
        return self.once("own", tensor, lambda: self._mean(tensor))

    def part(self, tensor: Any) -> Any:
        """This replica's part of `tensor`: the sum of the parts is what one device has."""
        return tensor if kinds.kind(tensor) is Kind.PARTIAL else self.first_only(self.same(tensor))

    def first_only(self, tensor: Any) -> Any:
        """A partial tensor whose sum is `tensor`, which is the same on all replicas."""
        return self.once("first", tensor, lambda: joined.first_only(tensor))

    def together(self, gradients: Sequence[Any]) -> None:
        """Have the partial ones of `gradients` summed by one exchange, as soon as one of them must be."""
        group = [each for each in gradients if isinstance(each, tf.Tensor) and kinds.kind(each) is Kind.PARTIAL]
        self._groups.update({id(each): group for each in group})

    def forget(self, tensor: Any) -> None:
        """Make anew what was made of `tensor`: a tape watches it from now on."""
        for name in ("rows", "partial", "own", "first", "later"):
            self._made.pop((name, id(tensor)), None)

    def once(self, name: str, tensor: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives for `tensor`, which is made once and kept by this name."""
        key = (name, id(tensor))
        if key not in self._made:
            with self.graph.as_default(), self.within(Mode.OFF):
                self._made[key] = (make(), tensor)  # which stays, so that no other tensor has its id
        return self._made[key][0]

    def _sum(self, tensor: Any) -> Any:
        key = ("partial", id(tensor))
        if key not in self._made:
            group = self._groups.get(id(tensor), [tensor])
            with self.graph.as_default(), self.within(Mode.OFF):
                totals = joined.same(group, self.adjoint)
            for part, total in zip(group, totals, strict=True):
                self._made["partial", id(part)] = (total, part)
        return self._made[key][0]

    def adjoint(self, gradient: Any) -> Any:
        """A gradient by a tensor that is the same on all replicas, as it flows to each replica's part of it."""
        if gradient is None:
            return None
        if isinstance(gradient, tf.IndexedSlices):
            gradient = dense(self, gradient)
        with self.within(Mode.STEP):
            return self.same(gradient) if kinds.kind(gradient) is Kind.PARTIAL else gradient

    def _mean(self, tensor: Any) -> Any:
        """Of what each replica has for itself."""
        if not tensor.dtype.is_floating:
            return joined.sums([joined.first_only(tensor)])[0]
        return joined.same([kinds.put(self.shard.mean(tensor), PARTIAL)], self.adjoint)[0]

    def _joined(self, tensor: Any, place: Placement) -> Any:
        if tensor.dtype == tf.string:
            return joined.strings(tensor, lambda part: self.same(kinds.put(part, place)))
        if tensor.shape.rank is None:
            return tensor
        blocks, units = place.blocks, place.units
        part = tensor
        if blocks > 1:
            part = kinds.put(joined.apart(tensor, blocks), ROWS)
            units = None if units is None else units / blocks
        before, mine, after = self.around(part, units)
        whole = joined.rows(part, before, mine, after, self.adjoint)
        whole = whole if blocks == 1 else joined.together(whole, blocks)
        mask = graphs.mask_of(tensor)
        if mask is not None:
            graphs.keep_mask(whole, self.same(mask))
        return whole

    def around(self, part: Any, units: Fraction | None) -> tuple[Any, Any, Any]:
        """Entries of the replicas before this one, of this one and of those after it."""
        if units is not None:
            if self._before is None:
                self._before = self._counts(self.shard.examples)
            before, mine, after = self._before
            return _times(units, before), _times(units, mine), _times(units, after)
        return self._counts(self.shard.counted(tf.shape(part)[0]))

    def _counts(self, mine: Any) -> tuple[Any, Any, Any]:
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        every = joined.sums([tf.one_hot(number, self.shard.replicas, dtype=tf.int32) * mine])[0]
        before = tf.reduce_sum(every[:number])
        return before, mine, tf.reduce_sum(every) - before - mine

    def total_rows(self, tensor: Any, place: Placement) -> tuple[Any, Any]:
        """Entries of the first dimension of rows that count, here and of all replicas."""
        mine = self.shard.counted(tf.shape(tensor)[0])
        if place.units is not None:
            return mine, _times(place.units, self.shard.total)
        return mine, joined.sums([mine])[0]

    # operations

    def call(self, make: Make, op_type: str, inputs: Sequence[Any], attrs: Any) -> Any:
        """Make an operation of `inputs`, some of which are placed, and place what it gives."""
        if op_type == "IdentityN":
            return kinds.put_all(make(inputs), [kinds.of(each) for each in inputs])
        if op_type == "RaggedTensorToTensor" and self.mode is not Mode.GRADIENT:
            inputs = self._for_longest_row(make, inputs)
        if self.mode is Mode.STEP:
            return self.by_rules(make, op_type, list(inputs), attrs)
        if self.mode is Mode.GRADIENT and op_type in ("AddN", "AddV2", "Add"):
            inputs = self._summands(inputs)
        if self.mode is Mode.LAYER and op_type in rules.DRAWN and _may_be_of_rows(graphs.shape_in(inputs[0])):
            made = draws.apart(self, make, op_type, inputs, attrs)
        else:
            made = make(inputs, attrs=draws.alike(self, attrs))
        for output in made.outputs:
            place = _inferred(output, [kinds.of(each) for each in inputs], layer=self.mode is Mode.LAYER)
            if place is not None and place.kind is Kind.ROWS and op_type not in rules.ELEMENTWISE:
                place = Placement(Kind.ROWS, place.blocks, None)
            kinds.put(output, place)
        return made

    def _for_longest_row(self, make: Make, inputs: Sequence[Any]) -> list[Any]:
        """The inputs of an operation that pads rows of unlike lengths, for the longest row of all replicas."""
        with self.within(Mode.OFF):
            sizes = joined.widest(tf.shape(make(inputs, name=None).outputs[0])[1:])
            return [tf.cast(tf.concat([[-1], sizes], 0), inputs[0].dtype), *inputs[1:]]

    def by_rules(self, make: Make, op_type: str, inputs: list[Any], attrs: Any) -> Any:
        """Make an operation of a step."""
        if op_type in rules.LEFT_ALONE:
            return make(inputs)
        inputs = [self.same(each) if kinds.kind(each) is Kind.LATER else each for each in inputs]
        found = {kinds.kind(each) for each in inputs}
        if Kind.OWN in found:
            return self._of_own(make, inputs)
        for kind, of_kind in ((Kind.LOCAL, ragged.by_rules), (Kind.SIZE, sizes.of_sizes)):
            if kind in found:
                return of_kind(self, make, op_type, inputs, attrs)
        if Kind.PARTIAL in found and Kind.ROWS not in found and _stays_partial(op_type, inputs, attrs):
            if op_type in rules.ADDITIVE:
                terms = len(inputs) - (op_type == "ConcatV2")  # the last input of which is an axis
                inputs = [*self._summands(inputs[:terms]), *inputs[terms:]]
            return kinds.put_all(make(inputs), PARTIAL)
        inputs = [self.same(each) if kinds.kind(each) is Kind.PARTIAL else each for each in inputs]
        if Kind.ROWS in found:
            return self._of_rows(make, op_type, inputs, attrs)
        return make(inputs, attrs=draws.alike(self, attrs))

    def _of_rows(self, make: Make, op_type: str, inputs: list[Any], attrs: Any) -> Any:
        if op_type in rules.OF_SIZES:
            return sizes.of_rows(self, make, op_type, inputs)
        outputs = axes.decide(axes.Call(op_type, inputs, attrs))
        if outputs is None:
            return make([self.same(each) for each in inputs], attrs=draws.alike(self, attrs))
        return kinds.put_all(make(self._counted(op_type, inputs) if outputs is PARTIAL else inputs), outputs)

    def _summands(self, inputs: Sequence[Any]) -> list[Any]:
        """The terms of a sum that has partial ones: those that are the same on all replicas count once."""
        if not any(kinds.kind(each) is Kind.PARTIAL for each in inputs):
            return list(inputs)
        return [self.first_only(each) if _is_same(each) else each for each in inputs]

    def _counted(self, op_type: str, inputs: list[Any]) -> list[Any]:
        """The inputs of an operation that sums over rows: a mean is a part of one device's, and a padding row
        counts nothing."""
        with self.within(Mode.OFF):
            at, first = next((i, each) for i, each in enumerate(inputs) if kinds.kind(each) is Kind.ROWS)
            place = kinds.of(first)
            assert place is not None
            if op_type == "Mean":
                mine, total = self.total_rows(first, place)
                kept = tf.cast(mine, first.dtype) / tf.cast(total, first.dtype)
            elif self.shard.may_be_empty:
                kept = tf.cast(self.shard.examples > 0, first.dtype)
            else:
                return inputs
            return [*inputs[:at], kinds.put(first * kept, place), *inputs[at + 1 :]]

    def _of_own(self, make: Make, inputs: list[Any]) -> Any:
        """What a replica's own values make with others: values of its own, or of its rows."""
        inputs = [self.same(each) if kinds.kind(each) is Kind.PARTIAL else each for each in inputs]
        made = make(inputs)
        for output in made.outputs:
            kinds.put(output, ROWS if kinds.is_open(output) and output.dtype.is_floating else OWN)
        return made


_current: ContextVar[Tracker | None] = ContextVar("placement", default=None)
"""Of the replica that this thread traces."""


def current() -> Tracker | None:
    """What is known of the step that is being traced; None where no replicas share one."""
    return _current.get()


def over_all_rows(function: Callable[..., Any], *tensors: Any) -> Any:
    """What `function` gives for `tensors` of all replicas' rows together; every replica computes the same.

    - function: of as many tensors as there are `tensors`. The operations in it are made as they are.
    - tensors: this replica's rows, [n, …]; `function` gets [N, …]. A tensor without rows is given as on one device.

    Gradients flow to the rows of each replica. Use it in a step, loss or metric for what has to see all rows and is
    made of operations that `dt.fit` cannot know, such as those of a library of your own. Where one replica has all
    rows this is `function(*tensors)`. Raises TrainerError in a scaled step and in a step function of `dt.train`.
    """
    found = current()
    if found is not None:
        whole = tf.nest.map_structure(found.same, tensors, expand_composites=True)
        with found.within(Mode.OFF):
            return function(*whole)
    if building.get() or tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return function(*tensors)
    raise TrainerError(
        "dt.over_all_rows: this step puts replicas together by itself, so that their rows are not known; call it in a "
        "step, loss or metric that dt.fit trains with"
    )


def opened(shard: Shard, parts: Any) -> Any:
    """The tensors of a batch with an open number of rows, but for those that are whole: TensorFlow may know a share."""
    flags = iter(shard.whole)

    def open_rows(part: Any) -> Any:
        if part is None or next(flags, False) or not isinstance(part, tf.Tensor) or kinds.is_open(part):
            return part
        return tf.raw_ops.PlaceholderWithDefault(input=part, shape=[None, *part.shape[1:]])

    return parts if shard.replicas == 1 else tf.nest.map_structure(open_rows, parts)


@contextlib.contextmanager
def tracing(shard: Shard, data: Any) -> Iterator[Tracker | None]:
    """While this lasts, a replica's step on `data` (in any structure) is traced with placements."""
    if shard.replicas == 1:
        yield None
        return
    tracker = Tracker(shard)
    if shard.is_shared:
        tracker.note_rows(data)
    with setting(_current, tracker):
        yield tracker


@contextlib.contextmanager
def off() -> Iterator[None]:
    """While this lasts, operations are made as they are."""
    tracker = current()
    with contextlib.nullcontext() if tracker is None else tracker.within(Mode.OFF):
        yield


def _is_same(tensor: Any) -> bool:
    return kinds.of(tensor) is None and tensor.dtype not in (tf.bool, tf.string, tf.resource, tf.variant)


def _may_be_of_rows(shape: tf.TensorShape) -> bool:
    return shape.rank is None or (shape.rank > 0 and shape[0] is None)


def _stays_partial(op_type: str, inputs: Sequence[Any], attrs: Any) -> bool:
    """Whether an operation gives partial values; its inputs are partial, or the same on all replicas."""
    partial = [i for i, each in enumerate(inputs) if kinds.kind(each) is Kind.PARTIAL]
    fractions = kinds.has_fractions(inputs[0].dtype)
    if op_type in rules.ADDITIVE:
        return True
    if op_type in rules.PRODUCTS:
        return len(partial) == 1
    if op_type == "Cast":
        return fractions and kinds.has_fractions(tf.as_dtype(attrs["DstT"].type))
    rounds = op_type in rules.DIVIDE and not fractions
    fills_up = op_type == "MatrixDiagPartV3" and tf.get_static_value(inputs[2]) != 0
    linear = op_type in rules.LINEAR or op_type in rules.QUOTIENTS or op_type == "UnsortedSegmentSum"
    return linear and partial == [0] and not rounds and not fills_up


def _inferred(output: Any, places: Sequence[Placement | None], *, layer: bool) -> Placement | None:
    """The placement of what an operation gives that nothing is replaced for."""
    found = [place for place in places if place is not None]
    rows = next((place for place in found if place.kind is Kind.ROWS), None)
    if layer or (rows is None and not any(place.kind is Kind.PARTIAL for place in found)):
        if kinds.any_open(output) and output.dtype not in (tf.resource, tf.variant):
            return rows or ROWS
        return OWN
    if rows is not None and kinds.any_open(output):
        return rows
    return PARTIAL if kinds.has_fractions(output.dtype) or output.dtype is tf.variant else OWN


def dense(tracker: Tracker, slices: Any) -> Any:
    """The dense gradient that `slices` stand for."""
    parts = any(kinds.of(each) is not None for each in (slices.values, slices.indices))
    with tracker.within(Mode.GRADIENT):
        return kinds.put(tf.convert_to_tensor(slices), PARTIAL if parts else None)


def _times(units: Fraction, number: Any) -> Any:
    return number if units == 1 else number * units.numerator // units.denominator
