# SPDX-License-Identifier: Apache-2.0
"""What one task trains on: batches, its place in the data, and where they come from."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, NoReturn

import keras
import tensorflow as tf

from dtjob_trainer.data import stream
from dtjob_trainer.data.marks import Marks
from dtjob_trainer.data.sharding import Eras, Sizes


@dataclass(frozen=True)
class Batch:
    """One step's data for one task; in the graph the numbers are tensors (int32, scalars)."""

    inputs: tuple[Any, ...]
    """What `decode` turns into (x, y, sample weights); at least one row, even where `count` is 0."""
    count: Any
    """Examples of this task's share."""
    total: Any
    """Examples of the global batch."""
    fits: Any = True
    """Whether these are the rows that must come at this step (bool, scalar)."""
    marks: tuple[float, ...] = ()
    """What tells the global batch from another one, of the first batch of a pass that tasks compare."""


@dataclass(frozen=True)
class Place:
    """A task's place in the data: `shard` of `shards`, and the replicas of all tasks together."""

    shard: int
    shards: int
    replicas: int
    remote: bool = False
    """Whether steps run on other machines, so that inputs must be the examples themselves."""


@dataclass(frozen=True)
class Wanted:
    """How data is to be taken, all tasks together, and what messages call it."""

    argument: str = "x"
    """The argument that it was given as."""
    steps_argument: str = "steps_per_epoch"
    """The argument that says how many of its batches to take."""
    batch_size: int | None = None
    """Examples of a batch; None where nobody asked for a size."""
    any_batch_size: bool = False
    """Whether results do not depend on the size of batches, so that it may be raised to one example a replica."""
    steps: int | None = None
    """Steps of an epoch, where the program has said so; None: a pass over the data makes one."""
    at_most: int | None = None
    """Take only so many of the first batches of a pass."""
    seed: int = 0
    """Seed of the order."""
    shuffle: bool = False
    """Whether to give the examples a new order in each epoch, where they have none of their own."""
    shuffle_batches: bool = False
    """Whether to take batches of arrays in a new order in each epoch, with the same examples in each."""
    alike: bool = False
    """Whether all passes must give the same batches, as a validation's."""
    endless: bool = False
    """Whether a pass may go on without an end."""
    drop_last: bool = False
    """Whether to leave out a last batch that is not full."""


class Source(ABC):
    """Where batches come from."""

    steps: int | None
    """Batches of a pass over the data; None: nobody knows before its end."""
    may_be_empty: bool
    """Whether some replica may get a share of no examples at some step."""
    inexact = ""
    """Why a restarted run does not see the same data in the same order. Empty: it does."""
    remark = ""
    """What to say of how it is read. Empty if nothing."""
    argument = "x"
    """The argument that it was given as."""
    compared: Literal["all", "targets", "labels"] | None = None
    """What tasks compare of the first batch of each pass. None: tasks do not read the same batches.

    - all: the whole batch;
    - targets: all but the inputs, which Python code may draw at random;
    - labels: whole numbers and texts of targets. Random operations of TensorFlow may make everything else.
    """
    sizes: Sizes | None = None
    """The examples of each step, where it is known how many there are in all."""
    once = False
    """Whether there is one pass at most, as over a generator."""
    own_ends = False
    """Whether tasks may come to the end of a pass at different steps, and the pass goes on until the last one has."""
    most: int | None = None
    """The most batches that are taken of a pass, where they are limited."""
    element_spec: Any = None
    """`elements` as `tf.TypeSpec`s; None where there are none for steps to read by themselves."""
    numbered = False
    """Whether a batch's inputs are one vector of row numbers in host memory."""

    distributed = False
    """Whether a batch's inputs are values of all replicas already, which the program has distributed itself."""
    marks: tuple[Marks, ...] = ()
    """Of x, y and sample weights, where all of them are in memory, in every task the same."""
    batch: int | None = None
    """Examples of a batch that is full, where that is known."""
    rows: int | None = None
    """Examples of every batch, where all have the same number; None: they differ, or nobody knows."""
    cut_by_batch = False
    """Whether it depends on the size of batches in which order a pass comes to its examples."""
    weights_of: Callable[[Any], Any] | None = None
    """In the graph: the weights of examples, given their targets. None: they are among the inputs, or 1."""
    whole: tuple[bool, ...] = ()
    """By part of a batch's inputs, whether every replica gets all rows of the part. Empty: they share all parts."""
    own_shares = False
    """Whether the program shares the examples out by itself, so that nobody knows which another number of tasks has
    taken."""
    waited = 0.0
    """Seconds for which the host has waited for batches of this task."""

    @property
    def exact(self) -> bool:
        """Whether a restarted run sees the same data in the same order."""
        return not self.inexact

    def shared(self, eras: Eras) -> None:  # noqa: B027  # most data has one order for all numbers of tasks
        """Told how many tasks have shared the batches so far of the pass that `epoch` or `elements` goes on with."""

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """The batches of pass `number` over the data, from `first_step` on. Raises DataError if one does not fit."""
        if self.most is not None and first_step >= self.most:
            return
        held, first = [iter(self.elements(number, first_step))], self.compared is not None
        for step in count(first_step) if self.most is None else range(first_step, self.most):
            element = next(held[0], None)
            if element is None:
                stream.free(held)
                self.ended(number, step)
                return
            with tf.device("CPU:0"):
                found = self.cut(element, tf.constant(step))
            if not found.fits:
                self.complain(element, step)
            marks = self.marks_of(element) if first else ()
            yield replace(found, count=int(found.count), total=int(found.total), marks=marks)
            first = False
        if next(held[0], None) is None:  # to its end, without which a cache() in it would begin anew
            stream.free(held)

    def elements(self, number: int, first_step: int) -> Any:
        """The batches of `epoch` as a `tf.data.Dataset`, for steps to read; where `element_spec` is given."""
        raise NotImplementedError

    def marks_of(self, element: Any) -> tuple[float, ...]:
        """What tells an element of `elements` from another one; of sources that are `compared`."""
        raise NotImplementedError

    def cut(self, element: Any, step: Any) -> Batch:
        """In the graph: this task's part of an element of `elements`, at `step` (scalar) of the pass."""
        raise NotImplementedError

    def complain(self, element: Any, step: int) -> NoReturn:
        """Raise DataError for an element at `step` of a pass that does not fit, as `cut` has found."""
        raise NotImplementedError

    def ended(self, number: int, step: int) -> None:  # noqa: B027
        """Told where `elements` end after `step` and before `most`; raises DataError where they must not."""

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """In the graph: a batch's inputs → (x, y, sample weights), with None for what there is not."""
        x, y, weights = self._examples(*inputs)
        return x, y, weights if self.weights_of is None else self.weights_of(y)

    def _examples(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """In the graph: a batch's inputs → (x, y, the sample weights that are among the inputs)."""
        return triple(inputs)

    @abstractmethod
    def input_spec(self) -> tuple[Any, ...]:
        """A batch's inputs as `tf.TypeSpec`s with a batch dimension of None."""

    def spec(self) -> tuple[Any, Any, Any]:
        """(x, y, sample weights) as `tf.TypeSpec`s with a batch dimension of None."""
        x, y, weights = self._example_spec()
        return x, y, weights if self.weights_of is None else tf.TensorSpec([None], keras.config.floatx())

    def _example_spec(self) -> tuple[Any, Any, Any]:
        """(x, y, the sample weights that are among the inputs) as `tf.TypeSpec`s with a batch dimension of None."""
        return triple(self.input_spec())

    def stand_in(self, number: int) -> tuple[Any, ...]:
        """Inputs of one row, of no weight, for a task that has come to the end of pass `number`; of sources with
        `own_ends` alone."""
        raise NotImplementedError

    def bytes_of(self, batch: Batch) -> int:
        """About how much memory `batch` takes."""
        tensors = tf.nest.flatten(batch.inputs, expand_composites=True)
        return sum(tensor.dtype.size * int(tf.size(tensor)) for tensor in map(tf.convert_to_tensor, tensors))

    def epoch_begins(self) -> None:  # noqa: B027  # most data need not know
        """Told where an epoch begins, which need not be a pass."""

    def epoch_ends(self) -> None:  # noqa: B027
        """Told where an epoch's last step is done, and as in Keras once before the first, and before an evaluation."""


def triple(parts: Any) -> tuple[Any, Any, Any]:
    """(x,), (x, y) or (x, y, sample weights) → all three."""
    return (parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None)
