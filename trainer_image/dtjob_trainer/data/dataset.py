"""A batched `tf.data.Dataset`, as the batches of one task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data import randomness
from dtjob_trainer.data.batches import Batch, Place, Wanted, triple
from dtjob_trainer.data.sharding import Sizes, share
from dtjob_trainer.errors import DataError


class DatasetSource:
    """A batched `tf.data.Dataset`, whose every element is a global batch; each task takes its rows of it."""

    def __init__(self, dataset: Any, place: Place, wanted: Wanted) -> None:
        cardinality, steps, argument = int(dataset.cardinality()), wanted.steps, wanted.argument
        if steps is None and wanted.at_most is None and cardinality < 0:
            raise DataError(
                f"{argument}: the Dataset does not know its length; give {wanted.steps_argument}, or use "
                "assert_cardinality"
            )
        check_elements(dataset, argument)
        if cardinality == 0:
            raise DataError(
                f"{argument}: the Dataset has no batches; give it examples, as many as a batch has where it is batched "
                "with drop_remainder=True"
            )
        if place.shards > 1:
            if randomness.in_any_order(dataset):
                raise DataError(
                    f"{argument}: a part of the Dataset has deterministic=False, so that each task would cut its share "
                    "from other batches; leave that out"
                )
            dataset = dataset.with_options(_in_order())
        self.steps = steps if steps is not None else first_of(cardinality if cardinality >= 0 else None, wanted.at_most)
        self.sizes: Sizes | None = None
        self._may_end_early = steps is None and cardinality < 0
        self._wanted = wanted
        self._continues = steps is not None  # as in Keras: one pass over the Dataset may span several epochs
        self._dataset = dataset.repeat() if self._continues and cardinality != -1 else dataset
        self._place = place
        rows = rows_of_each_batch(dataset)
        self.may_be_empty = place.replicas > 1 if rows is None else rows < place.replicas
        self.exact = randomness.repeats(dataset, from_begin=True)
        self._iterator: Iterator[Any] | None = None

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch`; skips (and so decodes) what came before `first_step`."""
        if self._iterator is None or not self._continues:
            skip = epoch * self.steps + first_step if self._continues else first_step
            self._iterator = iter((self._dataset.skip(skip) if skip else self._dataset).prefetch(2))
        for step in range(first_step, self.steps):
            element = next_element(self._iterator, self._wanted, may_end=self._may_end_early and step > 0)
            if element is None:  # in all tasks, as each reads all of the Dataset
                return
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
        return triple(inputs)

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of the parts of an element."""
        spec = self._dataset.element_spec
        parts: tuple[Any, ...] = keras.tree.map_structure(_any_batch, spec if isinstance(spec, tuple) else (spec,))
        return parts

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        return triple(self.input_spec())


def rows_of_each_batch(dataset: Any) -> int | None:
    """Examples in every batch of a batched Dataset, where all have the same number and it says so."""
    shape = keras.tree.flatten(dataset.element_spec)[0].shape
    return int(shape[0]) if shape.rank and shape[0] is not None else None


def next_element(iterator: Iterator[Any], wanted: Wanted, *, may_end: bool = False) -> Any:
    """The next element of an epoch that is not over; where the Dataset is, None if it `may_end`, else a DataError."""
    element = next(iterator, None)
    if element is None and not may_end:
        raise DataError(
            f"{wanted.argument}: the Dataset ended before its epoch; give a smaller {wanted.steps_argument}, or repeat "
            "it"
        )
    return element


def first_of(batches: int | None, at_most: int | None) -> int:
    """Steps of an epoch of `at_most` so many of the `batches`. None: unknown how many, or all; one of them is known."""
    return min(number for number in (batches, at_most) if number is not None)


def check_elements(dataset: Any, argument: str) -> None:
    """Raises DataError where `dataset` (given as `argument`) has elements that cannot be trained on."""
    spec = dataset.element_spec
    if isinstance(spec, tuple) and len(spec) not in (1, 2, 3):
        raise DataError(f"{argument}: elements must be x, (x, y) or (x, y, sample weights), not {len(spec)} parts")
    if not all(isinstance(leaf, tf.TensorSpec) for leaf in keras.tree.flatten(spec)):
        raise DataError(f"{argument}: elements must be dense tensors; ragged and sparse ones cannot be sharded")


def _in_order() -> Any:
    options = tf.data.Options()
    options.deterministic = True
    return options


def _any_batch(spec: Any) -> Any:
    return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)
