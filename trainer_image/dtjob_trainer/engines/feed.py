# SPDX-License-Identifier: Apache-2.0
"""The data of a custom loop: every replica gets equally many examples at every step, or what the program made of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import keras
import tensorflow as tf

from dtjob_trainer.data import elements, other_batches, sources
from dtjob_trainer.data.batches import Place, Source, Wanted
from dtjob_trainer.data.dataset import rows_of_each_batch
from dtjob_trainer.data.other_batches import Position
from dtjob_trainer.data.sharding import Eras, eras_of_pass
from dtjob_trainer.errors import DataError
from dtjob_trainer.strategies.collective import Group

See = Callable[[Source, Sequence[float]], None]
"""Compares the marks of the first batch of a pass with those of other tasks."""


class Feed(Protocol):
    """The inputs of one step after the other."""

    exact: bool
    """Whether a restarted run sees the same data."""
    inexact: str
    """Why not, if that is known."""
    remark: str
    """What to say of how it is read. Empty if nothing."""
    signature: Any
    """The inputs as `tf.TypeSpec`s."""

    def shared(self, history: Eras) -> None:
        """Told how many tasks have shared the batches of the run so far."""

    def position(self, step: int) -> Position | None:
        """Where in the data the run is after `step`, for a checkpoint."""

    def take_up(self, kept: Position, step: int) -> str | None:
        """Go on after `step` where `kept` told of the place; what to say where the data is cut into other batches."""

    def inputs(self, step: int) -> Iterator[Any]:
        """Inputs from `step` on, without end."""

    def run(self, body: Callable[[Any], Any], inputs: Any, group: Group) -> Any:
        """In the graph: run `body` on every replica, on its part of `inputs` as `step_fn` takes it."""


class SourceFeed:
    """Arrays, a Dataset or a data function, sharded by us as for `fit`."""

    def __init__(self, source: Source, rows: int | None, see: See | None = None) -> None:
        """`rows`: examples of this task at each step; None where the size of batches may change (one replica only).

        - see: gets the source and the marks of the first batch of each pass, if tasks compare them.
        """
        self._source, self._rows, self._see = source, rows, see
        self._history: Eras = ()
        self._pass, self._pass_began = 0, 0
        """The number of a pass and the step at which it began, from which those after it are counted."""
        self.exact, self.inexact, self.remark = source.exact, source.inexact, source.remark

        def fixed(spec: Any) -> Any:
            shape = [rows, *spec.shape[1:]]
            return spec if elements.is_composite(spec) else tf.TensorSpec(shape, spec.dtype)

        self.signature = keras.tree.map_structure(fixed, source.input_spec())

    def shared(self, history: Eras) -> None:
        """Told how many tasks have shared the batches of the run so far."""
        self._history = history

    def position(self, step: int) -> Position:
        """Where in the data the run is after `step`, for a checkpoint."""
        number, first_step = self._place(step)
        source = self._source
        return Position(
            passes=number,
            pass_began=step - first_step,
            length=source.steps,
            batch=source.batch,
            cut_by_batch=source.cut_by_batch,
        )

    def take_up(self, kept: Position, step: int) -> str | None:
        """Go on after `step` in the pass of which `kept` told, at the same example where batches are others now."""
        self._pass, self._pass_began = kept.passes, kept.pass_began
        if not other_batches.differ(kept, self._source):
            return None
        done = step - self._pass_began
        there = other_batches.converted(done, kept, self._source)
        if there is None and self._source.steps is None and kept.batch and self._source.batch:
            there = done * kept.batch // self._source.batch  # a pass without an end cannot begin anew
        self._pass_began = other_batches.pass_began(step, there, self._source)
        return other_batches.told(kept, self._source, self._pass, there)

    def inputs(self, step: int) -> Iterator[Any]:
        """This task's inputs from `step` on, epoch after epoch."""
        while True:
            before = step
            number, first_step = self._place(step)
            self._source.shared(eras_of_pass(self._history, step - first_step))
            for batch in self._source.epoch(number, first_step):
                if batch.marks and self._see is not None:
                    self._see(self._source, batch.marks)
                found = elements.rows_in(batch.inputs)
                if self._rows is not None and found != self._rows:
                    raise DataError(f"data: a batch has {found} examples for this task instead of {self._rows}")
                yield batch.inputs
                step += 1
            if step == before:
                raise DataError("data: it has ended before total_steps; give a smaller total_steps, or repeat it")

    def _place(self, step: int) -> tuple[int, int]:
        """Number of the pass that goes on after `step`, and how many of its steps are done."""
        after = step - self._pass_began
        number, first_step = divmod(after, self._source.steps) if self._source.steps else (0, after)
        return self._pass + number, first_step

    def run(self, body: Callable[[Any], Any], inputs: Any, group: Group) -> Any:
        """Run `body` on every replica, on its rows of `inputs`."""
        return group.strategy.run(lambda: body(self._of_replica(inputs, group)))

    def _of_replica(self, inputs: Any, group: Group) -> Any:
        """This replica's rows of `inputs`: x, or (x, y) as the data has them."""
        if group.local > 1:
            assert self._rows is not None
            size = self._rows // group.local
            with tf.device("CPU:0"):  # where the data is: a GPU would be given all of it for its part
                first = (tf.distribute.get_replica_context().replica_id_in_sync_group - group.first_replica) * size
                inputs = keras.tree.map_structure(lambda part: _rows_of(part, first, size), inputs)
        parts = [part for part in self._source.decode(*inputs) if part is not None]
        return parts[0] if len(parts) == 1 else tuple(parts)


class DistributedFeed:
    """A dataset that the program has distributed itself, by the strategy's methods. It starts anew after a restart."""

    exact = False
    inexact = ""
    remark = ""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.signature = dataset.element_spec

    def shared(self, history: Eras) -> None:
        """Nothing: it is the program's own."""

    def position(self, step: int) -> None:
        """None: it has no place to go back to."""

    def take_up(self, kept: Position, step: int) -> str | None:
        """Nothing, whatever was trained on."""
        return None

    def inputs(self, step: int) -> Iterator[Any]:
        """The elements from the first one on, whatever `step` is, pass after pass."""
        while True:
            empty = True
            for element in self._dataset:
                yield element
                empty = False
            if empty:
                raise DataError("data: the distributed dataset has no elements")

    def run(self, body: Callable[[Any], Any], inputs: Any, group: Group) -> Any:
        """Run `body` on every replica, on its part of `inputs`, which are distributed values already."""
        return group.strategy.run(body, args=(inputs,))


def make(
    data: Any, *, batch_size: int | None, total_steps: int, place: Place, seed: int, see: See | None = None
) -> Feed:
    """The feed of what `train` was given as `data`. Raises DataError where it cannot be trained on as asked."""
    if isinstance(data, tf.distribute.DistributedDataset):
        if place.remote:
            raise DataError(
                "data: under ParameterServer the chief hands out the examples; give arrays, a tf.data.Dataset or a "
                "data function, not a distributed dataset"
            )
        if batch_size is not None:
            raise DataError("data: a distributed dataset brings its own batches; leave out batch_size")
        return DistributedFeed(data)
    wanted = Wanted("data", "total_steps", batch_size, seed=seed, shuffle=True, drop_last=True, endless=True)
    one_long_epoch = replace(wanted, steps=total_steps)
    if isinstance(data, tf.data.Dataset):
        rows = _rows_of_dataset(data, place)
        if int(data.cardinality()) < 0:  # one pass without an end
            data, wanted = data.repeat(), one_long_epoch
        source = sources.make(data, None, None, wanted, place)
        return SourceFeed(source, rows // place.shards if rows is not None else None, see)
    if sources.is_batched(data):
        raise DataError(
            f"data: a {type(data).__name__} is for fit alone; give arrays, a batched tf.data.Dataset "
            "(tf.data.Dataset.from_generator makes one) or a data function"
        )
    size = batch_size if batch_size is not None else sources.DEFAULT_BATCH_SIZE
    if size % place.replicas:
        raise DataError(
            f"batch_size={size} is the size of the global batch and must be a multiple of the number of replicas, "
            f"{place.replicas}: in a custom loop all get equally many examples"
        )
    source = sources.make(data, None, None, wanted, place)
    return SourceFeed(source, size // place.shards)


def _rows_of_dataset(dataset: Any, place: Place) -> int | None:
    """Examples of a batch, where all have the same number. Raises DataError where it must be known and is not."""
    rows = rows_of_each_batch(dataset)
    if place.replicas > 1 and (rows is None or rows % place.replicas):
        raise DataError(
            f"data: with {place.replicas} replicas each batch must have the same number of examples, a multiple of "
            f"{place.replicas}; use .batch(SIZE, drop_remainder=True)"
        )
    return rows


def _rows_of(part: Any, first: Any, size: int) -> Any:
    rows = elements.rows_of(part, first, first + size)
    return tf.ensure_shape(rows, [size, *part.shape[1:]]) if isinstance(part, tf.Tensor) else rows
