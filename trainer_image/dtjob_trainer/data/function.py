"""A data function (a callable of DataContext), as the batches of one task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data import randomness
from dtjob_trainer.data.batches import Batch, Place, Wanted, triple
from dtjob_trainer.data.context import DataContext
from dtjob_trainer.data.dataset import check_elements, first_of, next_element
from dtjob_trainer.data.sharding import Sizes, less_than_a_batch, share
from dtjob_trainer.errors import DataError


class FunctionSource:
    """A function of DataContext that returns this shard's unbatched Dataset, called anew for each epoch."""

    def __init__(self, function: Callable[[DataContext], Any], batch_size: int, place: Place, wanted: Wanted) -> None:
        """`batch_size`: examples of a batch of all tasks, instead of `wanted.batch_size`."""
        self._function, self._batch_size, self._place, self._wanted = function, batch_size, place, wanted
        steps, argument = wanted.steps, wanted.argument
        dataset, told = self._call(0, 0)
        if not isinstance(dataset, tf.data.Dataset):
            kind = type(dataset).__name__
            raise DataError(f"{argument}: the data function must return a tf.data.Dataset, not {kind}")
        check_elements(dataset, argument)
        sizes = told
        if sizes is None and place.shards == 1 and int(dataset.cardinality()) > 0:
            sizes = Sizes(int(dataset.cardinality()), batch_size, wanted.drop_last)
        if sizes is None and steps is None and wanted.at_most is None:
            raise DataError(
                f"{argument}: nobody knows how many examples there are; take the indices from context.shuffled(n) "
                f"or context.files(counts) in the data function, or give {wanted.steps_argument}"
            )
        if sizes is not None and sizes.steps == 0:
            raise DataError(less_than_a_batch(argument, sizes))
        if sizes is not None and steps is not None and steps > sizes.steps:
            batches = f"{argument} has {sizes.steps} batches of {batch_size}"
            raise DataError(f"{wanted.steps_argument}={steps}, but {batches}")
        self.sizes, self._spec = sizes, dataset.element_spec
        self.steps = (
            steps if steps is not None else first_of(sizes.steps if sizes is not None else None, wanted.at_most)
        )
        self.may_be_empty = sizes is not None and sizes.smallest_share(place.replicas) == 0
        self.exact = randomness.repeats(dataset, from_begin=told is None)

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch`; where the function did not ask for indices, earlier examples are skipped."""
        dataset, told = self._call(epoch, first_step)
        low, high = share(self._batch_size, self._place.shard, self._place.shards)
        if told is None and first_step:
            dataset = dataset.skip(first_step * (high - low))
        iterator = iter(dataset.batch(high - low).prefetch(2))
        for step in range(first_step, self.steps):
            element = next_element(iterator, self._wanted)
            inputs = element if isinstance(element, tuple) else (element,)
            yield Batch(inputs, *self._counts(step, int(keras.tree.flatten(inputs)[0].shape[0])))

    def _counts(self, step: int, rows: int) -> tuple[int, int]:
        """This task's examples and all tasks' at `step`, for which the function gave `rows`."""
        place, total = self._place, self._batch_size if self.sizes is None else self.sizes.at(step)
        low, high = share(total, place.shard, place.shards)
        if self.sizes is None and place.shards == 1 and rows >= place.replicas:
            return rows, rows  # the last batch of data of unknown length
        if rows != max(high - low, 1):
            raise DataError(
                f"{self._wanted.argument}: the data function gave {rows} examples for step {step} of the epoch, but "
                f"this task's share of the batch are {high - low}; give them all, or a smaller "
                f"{self._wanted.steps_argument}, or take the indices from context.shuffled(n)"
            )
        return high - low, total

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """The inputs are the examples."""
        return triple(inputs)

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of the parts of an element, with a batch dimension."""
        spec = self._spec if isinstance(self._spec, tuple) else (self._spec,)
        parts: tuple[Any, ...] = keras.tree.map_structure(lambda s: tf.TensorSpec([None, *s.shape], s.dtype), spec)
        return parts

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples, with a batch dimension."""
        return triple(self.input_spec())

    def _call(self, epoch: int, first_step: int) -> tuple[Any, Sizes | None]:
        context = DataContext(
            seed=self._wanted.seed,
            epoch=epoch,
            shard=self._place.shard,
            shards=self._place.shards,
            batch_size=self._batch_size,
            first_step=first_step,
            shuffle=self._wanted.shuffle,
            drop_last=self._wanted.drop_last,
        )
        return self._function(context), context.sizes
