"""Arrays, a `tf.data.Dataset` or a data function, as the batches of one task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import DataContext, DataError, Sizes, common_length, epoch_order, shard_rows, share


@dataclass(frozen=True)
class Batch:
    """One step's data for one task."""

    inputs: tuple[Any, ...]
    """What `decode` turns into (x, y, sample weights); at least one row, even where `count` is 0."""
    count: int
    """Examples of this task's share."""
    total: int
    """Examples of the global batch."""


@dataclass(frozen=True)
class Place:
    """A task's place in the data: `shard` of `shards`, and the replicas of all tasks together."""

    shard: int
    shards: int
    replicas: int
    remote: bool = False
    """Whether steps run on other machines, so that inputs must be the examples themselves."""


class Source(Protocol):
    """Where batches come from."""

    steps: int
    """Steps of one epoch."""
    may_be_empty: bool
    """Whether some replica may get a share of no examples at some step."""
    exact: bool
    """Whether the order is a function of (seed, epoch), so that a restarted run sees the same data."""

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch` from `first_step` on."""

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """In the graph: a batch's inputs → (x, y, sample weights), with None for what there is not."""

    def input_spec(self) -> tuple[Any, ...]:
        """A batch's inputs as `tf.TensorSpec`s with a batch dimension of None."""

    def spec(self) -> tuple[Any, Any, Any]:
        """(x, y, sample weights) as `tf.TensorSpec`s with a batch dimension of None."""


class ArraySource:
    """Arrays in memory; a batch is a vector of row numbers, and the rows are gathered inside the step."""

    def __init__(
        self, arrays: tuple[Any, Any, Any], sizes: Sizes, steps: int | None, place: Place, seed: int | None
    ) -> None:
        self._sizes, self._place, self._seed = sizes, place, seed
        self.steps = steps if steps is not None else sizes.steps
        self.may_be_empty = sizes.smallest_share(place.replicas) == 0
        self.exact = True
        self._arrays = arrays
        with tf.device("CPU:0"):
            self._tensors = self._arrays if place.remote else keras.tree.map_structure(_tensor, self._arrays)

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch`; in the order of the arrays where the source has no seed.

        Where an epoch has a number of steps of its own, one pass over the arrays may span several epochs, or an epoch
        several passes (each in its own order).
        """
        place, sizes = self._place, self._sizes
        first, end = epoch * self.steps + first_step, (epoch + 1) * self.steps
        while first < end:
            number, step = divmod(first, sizes.steps)
            order = np.arange(sizes.n) if self._seed is None else epoch_order(sizes.n, self._seed, number)
            batches = shard_rows(order, sizes, place.shard, place.shards, step)
            for at, rows in enumerate(batches[: end - first], step):
                inputs = (rows,)
                if place.remote:
                    inputs = keras.tree.map_structure(lambda a, r=rows: None if a is None else a[r], self._arrays)
                yield Batch(inputs, sizes.of_shard(at, place.shard, place.shards), sizes.at(at))
            first += len(batches[: end - first])

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """The rows' examples, or the inputs themselves where they are examples already."""
        if self._place.remote:
            return _triple(inputs)
        gathered = keras.tree.map_structure(lambda t: None if t is None else tf.gather(t, inputs[0]), self._tensors)
        return _triple(gathered)

    def input_spec(self) -> tuple[Any, ...]:
        """Spec of the row numbers, or of the examples."""
        if self._place.remote:
            return tuple(part for part in self.spec() if part is not None)
        return (tf.TensorSpec([None], tf.int64),)

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        return _triple(keras.tree.map_structure(_array_spec, self._arrays))


class DatasetSource:
    """A batched `tf.data.Dataset`, whose every element is a global batch; each task takes its rows of it."""

    def __init__(self, dataset: Any, steps: int | None, place: Place, argument: str) -> None:
        cardinality = int(dataset.cardinality())
        if steps is None and cardinality < 0:
            raise DataError(
                f"{argument}: the Dataset does not know its length; give steps_per_epoch, or use assert_cardinality"
            )
        _check_elements(dataset, argument)
        self.steps = steps if steps is not None else cardinality
        self._continues = steps is not None  # as in Keras: one pass over the Dataset may span several epochs
        self._dataset = dataset.repeat() if self._continues and cardinality != -1 else dataset
        self._place = place
        rows = rows_of_each_batch(dataset)
        self.may_be_empty = place.replicas > 1 if rows is None else rows < place.replicas
        self.exact = not _shuffles(dataset)
        self._iterator: Iterator[Any] | None = None

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch`; skips (and so decodes) what came before `first_step`."""
        if self._iterator is None or not self._continues:
            skip = epoch * self.steps + first_step if self._continues else first_step
            self._iterator = iter((self._dataset.skip(skip) if skip else self._dataset).prefetch(2))
        for _ in range(first_step, self.steps):
            element = _next(self._iterator)
            inputs = element if isinstance(element, tuple) else (element,)
            total = int(keras.tree.flatten(inputs)[0].shape[0])
            low, high = share(total, self._place.shard, self._place.shards)
            begin, end = (low, high) if high > low else (0, 1)
            if self._place.shards > 1:
                inputs = keras.tree.map_structure(lambda part, b=begin, e=end: part[b:e], inputs)
            yield Batch(inputs, high - low, total)
        if not self._continues and first_step < self.steps:
            next(self._iterator, None)  # to its end, without which a cache() in it would begin anew

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """The inputs are the examples."""
        return _triple(inputs)

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of the parts of an element."""
        spec = self._dataset.element_spec
        parts: tuple[Any, ...] = keras.tree.map_structure(_any_batch, spec if isinstance(spec, tuple) else (spec,))
        return parts

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        return _triple(self.input_spec())


class FunctionSource:
    """A function of DataContext that returns this shard's unbatched Dataset, called anew for each epoch."""

    def __init__(
        self,
        function: Callable[[DataContext], Any],
        batch_size: int,
        steps: int | None,
        place: Place,
        *,
        seed: int,
        shuffle: bool,
        drop_last: bool,
        argument: str,
    ) -> None:
        self._function, self._batch_size, self._place = function, batch_size, place
        self._seed, self._shuffle, self._drop_last = seed, shuffle, drop_last
        dataset, sizes = self._call(0, 0)
        if not isinstance(dataset, tf.data.Dataset):
            kind = type(dataset).__name__
            raise DataError(f"{argument}: the data function must return a tf.data.Dataset, not {kind}")
        _check_elements(dataset, argument)
        if sizes is None and place.shards == 1 and int(dataset.cardinality()) > 0:
            sizes = Sizes(int(dataset.cardinality()), batch_size, drop_last)
        if sizes is None and steps is None:
            raise DataError(
                f"{argument}: nobody knows how many examples there are; take the indices from context.shuffled(n) "
                "or context.files(counts) in the data function, or give steps_per_epoch"
            )
        if sizes is not None and steps is not None and steps > sizes.steps:
            raise DataError(f"steps_per_epoch={steps}, but {argument} has {sizes.steps} batches of {batch_size}")
        self._sizes, self._spec = sizes, dataset.element_spec
        self.steps = steps if steps is not None else sizes.steps if sizes is not None else 0
        self.may_be_empty = sizes is not None and sizes.smallest_share(place.replicas) == 0
        self.exact = not _shuffles(dataset)

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch`; where the function did not ask for indices, earlier examples are skipped."""
        dataset, told = self._call(epoch, first_step)
        low, high = share(self._batch_size, self._place.shard, self._place.shards)
        if told is None and first_step:
            dataset = dataset.skip(first_step * (high - low))
        iterator = iter(dataset.batch(high - low).prefetch(2))
        for step in range(first_step, self.steps):
            element = _next(iterator)
            inputs = element if isinstance(element, tuple) else (element,)
            sizes = self._sizes
            count = sizes.of_shard(step, self._place.shard, self._place.shards) if sizes else high - low
            yield Batch(inputs, count, sizes.at(step) if sizes else self._batch_size)

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """The inputs are the examples."""
        return _triple(inputs)

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of the parts of an element, with a batch dimension."""
        spec = self._spec if isinstance(self._spec, tuple) else (self._spec,)
        parts: tuple[Any, ...] = keras.tree.map_structure(lambda s: tf.TensorSpec([None, *s.shape], s.dtype), spec)
        return parts

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples, with a batch dimension."""
        return _triple(self.input_spec())

    def _call(self, epoch: int, first_step: int) -> tuple[Any, Sizes | None]:
        context = DataContext(
            seed=self._seed,
            epoch=epoch,
            shard=self._place.shard,
            shards=self._place.shards,
            batch_size=self._batch_size,
            first_step=first_step,
            shuffle=self._shuffle,
            drop_last=self._drop_last,
        )
        return self._function(context), context.sizes


def make(
    x: Any,
    y: Any,
    sample_weight: Any,
    *,
    batch_size: int | None,
    steps: int | None,
    place: Place,
    seed: int,
    shuffle: bool,
    drop_last: bool,
    argument: str,
) -> Source:
    """The source for what the user gave as `argument`. Raises DataError where it cannot be trained on as asked."""
    brings_targets = isinstance(x, tf.data.Dataset) or callable(x)
    if brings_targets and (y is not None or sample_weight is not None):
        kind = "Dataset" if isinstance(x, tf.data.Dataset) else "data function"
        raise DataError(f"{argument}: a {kind} brings its own targets and weights; leave out y and sample_weight")
    if isinstance(x, tf.data.Dataset):
        if batch_size is not None:
            raise DataError(f"{argument}: a Dataset brings its own batches; leave out batch_size")
        return DatasetSource(x, steps, place, argument)
    if batch_size is None:
        batch_size = 32  # as in Keras
    if batch_size < place.replicas:
        raise DataError(
            f"batch_size={batch_size} is the size of the global batch and must be at least the number of replicas, "
            f"{place.replicas}"
        )
    if callable(x):
        return FunctionSource(
            x, batch_size, steps, place, seed=seed, shuffle=shuffle, drop_last=drop_last, argument=argument
        )
    if sample_weight is not None and y is None:
        raise DataError(f"{argument}: sample_weight weighs the losses of y; give y as well, or leave it out")
    if keras.tree.is_nested(y) and sample_weight is not None and not keras.tree.is_nested(sample_weight):
        sample_weight = keras.tree.map_structure(lambda _: sample_weight, y)  # as in Keras: one for every output
    arrays = keras.tree.map_structure(_array, (x, y, sample_weight))
    n = common_length([leaf for leaf in keras.tree.flatten(arrays) if leaf is not None], argument)
    sizes = Sizes(n, batch_size, drop_last)
    if sizes.steps == 0:
        raise DataError(f"{argument}: {n} examples are less than one batch of {batch_size}; give a smaller batch_size")
    return ArraySource(arrays, sizes, steps, place, seed if shuffle else None)


def rows_of_each_batch(dataset: Any) -> int | None:
    """Examples in every batch of a batched Dataset, where all have the same number and it says so."""
    shape = keras.tree.flatten(dataset.element_spec)[0].shape
    return int(shape[0]) if shape.rank and shape[0] is not None else None


def groups(batches: Iterator[Batch], size: int) -> Iterator[list[Batch]]:
    """`batches`, `size` at a time; fewer at the end."""
    while group := list(islice(batches, size)):
        yield group


def _array(value: Any) -> Any:
    """As NumPy, floats in Keras's default precision (as Keras does)."""
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype(keras.config.floatx()) if array.dtype.kind == "f" else array


def _tensor(array: Any) -> Any:
    return None if array is None else tf.constant(array)


def _array_spec(array: Any) -> Any:
    return None if array is None else tf.TensorSpec([None, *array.shape[1:]], array.dtype)


def _any_batch(spec: Any) -> Any:
    return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)


def _triple(parts: Any) -> tuple[Any, Any, Any]:
    """(x,), (x, y) or (x, y, sample weights) → all three."""
    return (parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None)


def _next(iterator: Iterator[Any]) -> Any:
    try:
        return next(iterator)
    except StopIteration:
        raise DataError("the Dataset ended before its epoch; give a smaller steps_per_epoch, or repeat it") from None


def _check_elements(dataset: Any, argument: str) -> None:
    spec = dataset.element_spec
    if isinstance(spec, tuple) and len(spec) not in (1, 2, 3):
        raise DataError(f"{argument}: elements must be x, (x, y) or (x, y, sample weights), not {len(spec)} parts")
    if not all(isinstance(leaf, tf.TensorSpec) for leaf in keras.tree.flatten(spec)):
        raise DataError(f"{argument}: elements must be dense tensors; ragged and sparse ones cannot be sharded")


def _shuffles(dataset: Any) -> bool:
    """Whether `.shuffle` is anywhere in the pipeline: its order cannot be resumed in a new process."""
    return "Shuffle" in type(dataset).__name__ or any(_shuffles(part) for part in dataset._inputs())
