# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory, as the batches of one task: their rows, and tensors that hold them with one copy at most.

TensorFlow copies a NumPy array twice: once so that nobody changes the tensor, and once more to begin where a cache line
does. An array that nobody can change and that begins there is not copied at all, as one of `np.load(…, mmap_mode="r")`.
Its file is then in memory once for all tasks of a machine.
"""

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Batch, Place, Source, Wanted, triple
from dtjob_trainer.data.elements import any_batch
from dtjob_trainer.data.sharding import EpochOrder, Rows, Sizes, batch_order, shard_rows
from dtjob_trainer.frameworks import datasets, tensorflow


class ArraySource(Source):
    """Arrays in memory; a batch is a vector of row numbers, and the rows are gathered inside the step."""

    def __init__(self, arrays: tuple[Any, Any, Any], sizes: Sizes, place: Place, wanted: Wanted) -> None:
        self._sizes, self._place = sizes, place
        self._wanted = wanted
        self.sizes, self.batch, self.cut_by_batch = sizes, sizes.batch, wanted.shuffle_batches
        self.rows = sizes.at(0) if sizes.at(0) == sizes.at(sizes.steps - 1) else None
        self.steps = self._steps = min(sizes.steps, wanted.at_most or sizes.steps)
        self.may_be_empty = sizes.smallest_share(place.replicas) == 0
        self.marks = tuple(marks.of(_dense(part)) for part in arrays)
        self._spec = triple(each(_array_spec, arrays))
        # else inside the step, which knows dense tensors alone
        self._gathered = place.remote or any(isinstance(leaf, Sliced) for leaf in keras.tree.flatten(arrays))
        self.numbered = not self._gathered
        self._held = arrays if self._gathered else each(host_tensor, arrays)
        """The arrays, or tensors that have their rows."""

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """The batches of pass `number`, each in an order of its own; as the arrays are where none was wanted."""
        place, sizes, order = self._place, self._sizes, self._order(number)
        batches = shard_rows(order, sizes, place.shard, place.shards, first_step)
        for step, rows in zip(range(first_step, self._steps), batches, strict=False):
            inputs = (rows,)
            if self._gathered:
                inputs = each(itemgetter(rows), self._held)
                inputs = inputs if place.remote else tuple(part for part in inputs if part is not None)
            yield Batch(inputs, sizes.of_shard(step, place.shard, place.shards), sizes.at(step))

    def _order(self, number: int) -> Rows | EpochOrder:
        wanted, sizes = self._wanted, self._sizes
        if wanted.shuffle:
            return EpochOrder(sizes.n, wanted.seed, number)
        return batch_order(sizes.n, sizes.batch, wanted.seed, number) if wanted.shuffle_batches else np.arange(sizes.n)

    def _examples(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """The rows' examples, or the inputs themselves where they are examples already."""
        if self._gathered:
            return triple(inputs)
        # where the arrays are: on a GPU, all of them would be copied there for the rows of each step
        with tf.device("CPU:0"):
            return triple(each(lambda tensor: tf.gather(tensor, inputs[0]), self._held))

    def input_spec(self) -> tuple[Any, ...]:
        """Spec of the row numbers, or of the examples."""
        if self._gathered:
            return tuple(part for part in self._spec if part is not None)
        return (tf.TensorSpec([None], tf.int64),)

    def _example_spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        return self._spec


def _dense(part: Any) -> Iterator[Any]:
    """The arrays of x, y or weights; of ragged and sparse ones, their number alone is compared."""
    return (leaf for leaf in keras.tree.flatten(part) if leaf is not None and not isinstance(leaf, Sliced))


def each(function: Callable[[Any], Any], arrays: Any) -> Any:
    """What `function` gives for each array of a structure; None stays None."""
    return keras.tree.map_structure(lambda array: None if array is None else function(array), arrays)


def _array_spec(array: Any) -> Any:
    if isinstance(array, Sliced):
        return any_batch(array.spec)
    return tf.TensorSpec([None, *array.shape[1:]], array.dtype)


class Sliced:
    """One ragged or sparse tensor, or a sparse matrix of SciPy, with floats in Keras's default precision."""

    def __init__(self, tensor: Any) -> None:
        if datasets.is_scipy_sparse(tensor):
            tensor = datasets.from_scipy(tensor)
        self._count = int(tensor.shape[0])
        self._rows = datasets.sliceable(tensor)
        self.spec = tf.type_spec_from_value(self[[0]] if len(self) else tensor)
        """Spec of some rows."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, numbers: Any) -> Any:
        """The tensor of the rows of these numbers, in their order."""
        return self._rows[numbers]


def can_slice(value: Any) -> bool:
    """Whether `value` is such a tensor."""
    return isinstance(value, tf.RaggedTensor | tf.SparseTensor) or datasets.is_scipy_sparse(value)


ALIGNED = 64
"""Where TensorFlow lets a tensor begin: at a multiple of so many bytes."""
LARGE = 2**20
"""Bytes from which on an array is worth it."""


def host_tensor(array: Any) -> Any:
    """The tensor of `array`. What the program writes to `array` later is not seen there."""
    with tf.device("CPU:0"):
        if array.nbytes < LARGE or array.dtype.kind not in "biufc":
            return tf.constant(array)
        shared = array if _can_be_shared(array) else _aligned_copy(array)
        return tensorflow.tensor_of(shared)


def _can_be_shared(array: Any) -> bool:
    """Whether nobody can write to `array`, and TensorFlow takes it as it is."""
    owner = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    contiguous = array.flags.c_contiguous and array.dtype.isnative
    return bool(contiguous and array.ctypes.data % ALIGNED == 0 and _is_read_only(owner))


def _is_read_only(owner: Any) -> bool:
    """Whether nobody can write through `owner`, of whose memory an array is a view. An array of its own may be made
    writeable again."""
    try:
        return owner is not None and memoryview(owner).readonly
    except TypeError:  # it does not tell
        return False


def _aligned_copy(array: Any) -> Any:
    """A copy of `array` that TensorFlow takes as it is."""
    memory = np.empty(array.nbytes + ALIGNED, np.uint8)
    begin = -memory.ctypes.data % ALIGNED
    kind = array.dtype.newbyteorder("=")
    copy = memory[begin : begin + array.nbytes].view(kind).reshape(array.shape)
    copy[...] = array
    return copy
