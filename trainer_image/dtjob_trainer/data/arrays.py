"""Arrays in memory, as the batches of one task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data.batches import Batch, Place, Wanted, triple
from dtjob_trainer.data.sharding import Sizes, epoch_order, shard_rows


class ArraySource:
    """Arrays in memory; a batch is a vector of row numbers, and the rows are gathered inside the step."""

    def __init__(self, arrays: tuple[Any, Any, Any], sizes: Sizes, place: Place, wanted: Wanted) -> None:
        self._sizes, self._place = sizes, place
        self._seed = wanted.seed if wanted.shuffle else None
        self.sizes: Sizes | None = sizes
        self._continues = wanted.steps is not None
        self.steps = wanted.steps if wanted.steps is not None else min(sizes.steps, wanted.at_most or sizes.steps)
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
        begin = epoch * (self.steps if self._continues else sizes.steps)
        first, end = begin + first_step, begin + self.steps
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
            return triple(inputs)
        gathered = keras.tree.map_structure(lambda t: None if t is None else tf.gather(t, inputs[0]), self._tensors)
        return triple(gathered)

    def input_spec(self) -> tuple[Any, ...]:
        """Spec of the row numbers, or of the examples."""
        if self._place.remote:
            return tuple(part for part in self.spec() if part is not None)
        return (tf.TensorSpec([None], tf.int64),)

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        return triple(keras.tree.map_structure(_array_spec, self._arrays))


def _tensor(array: Any) -> Any:
    return None if array is None else tf.constant(array)


def _array_spec(array: Any) -> Any:
    return None if array is None else tf.TensorSpec([None, *array.shape[1:]], array.dtype)
