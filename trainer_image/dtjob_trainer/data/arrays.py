# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory, as the batches of one task."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import host_tensors, marks
from dtjob_trainer.data.batches import Batch, Place, Source, Wanted, triple
from dtjob_trainer.data.elements import any_batch
from dtjob_trainer.data.sharding import EpochOrder, Rows, Sizes, batch_order, shard_rows
from dtjob_trainer.data.sliced import Sliced


class ArraySource(Source):
    """Arrays in memory; a batch is a vector of row numbers, and the rows are gathered inside the step."""

    exact = True

    def __init__(self, arrays: tuple[Any, Any, Any], sizes: Sizes, place: Place, wanted: Wanted) -> None:
        self._sizes, self._place = sizes, place
        self._wanted = wanted
        self.sizes, self.batch, self.cut_by_batch = sizes, sizes.batch, wanted.shuffle_batches
        self.rows = sizes.at(0) if sizes.at(0) == sizes.at(sizes.steps - 1) else None
        self.steps = self._steps = min(sizes.steps, wanted.at_most or sizes.steps)
        self.may_be_empty = sizes.smallest_share(place.replicas) == 0
        self.marks = tuple(marks.of(_dense(part)) for part in arrays)
        self._spec = triple(keras.tree.map_structure(_array_spec, arrays))
        # else inside the step, which knows dense tensors alone
        self._gathered = place.remote or any(isinstance(leaf, Sliced) for leaf in keras.tree.flatten(arrays))
        self.numbered = not self._gathered
        self._held = arrays if self._gathered else keras.tree.map_structure(host_tensors.of, arrays)
        """The arrays, or tensors that have their rows."""

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """The batches of pass `number`, each in an order of its own; as the arrays are where none was wanted."""
        place, sizes, order = self._place, self._sizes, self._order(number)
        batches = shard_rows(order, sizes, place.shard, place.shards, first_step)
        for step, rows in zip(range(first_step, self._steps), batches, strict=False):
            inputs = (rows,)
            if self._gathered:
                inputs = keras.tree.map_structure(lambda array, r=rows: _rows(array, r), self._held)
                inputs = inputs if place.remote else tuple(part for part in inputs if part is not None)
            yield Batch(inputs, sizes.of_shard(step, place.shard, place.shards), sizes.at(step))

    def _order(self, number: int) -> Rows | EpochOrder:
        wanted, sizes = self._wanted, self._sizes
        if wanted.shuffle:
            return EpochOrder(sizes.n, wanted.seed, number)
        return batch_order(sizes.n, sizes.batch, wanted.seed, number) if wanted.shuffle_batches else np.arange(sizes.n)

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """The rows' examples, or the inputs themselves where they are examples already."""
        if self._gathered:
            return triple(inputs)
        # where the arrays are: on a GPU, all of them would be copied there for the rows of each step
        with tf.device("CPU:0"):
            gathered = keras.tree.map_structure(lambda t: None if t is None else tf.gather(t, inputs[0]), self._held)
        return triple(gathered)

    def input_spec(self) -> tuple[Any, ...]:
        """Spec of the row numbers, or of the examples."""
        if self._gathered:
            return tuple(part for part in self.spec() if part is not None)
        return (tf.TensorSpec([None], tf.int64),)

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        return self._spec


def _dense(part: Any) -> Iterator[Any]:
    """The arrays of x, y or weights; of ragged and sparse ones, their number alone is compared."""
    return (leaf for leaf in keras.tree.flatten(part) if leaf is not None and not isinstance(leaf, Sliced))


def _rows(array: Any, rows: Any) -> Any:
    if array is None:
        return None
    return array.rows(rows) if isinstance(array, Sliced) else array[rows]


def _array_spec(array: Any) -> Any:
    if isinstance(array, Sliced):
        return any_batch(array.spec)
    return None if array is None else tf.TensorSpec([None, *array.shape[1:]], array.dtype)
