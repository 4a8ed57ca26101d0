# SPDX-License-Identifier: Apache-2.0
"""A data function (a callable of DataContext), as the batches of one task."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import elements, randomness
from dtjob_trainer.data.batches import Batch, Place, Source, Wanted
from dtjob_trainer.data.dataset import DatasetSource, check_end
from dtjob_trainer.data.sharding import Eras, Rows, Sizes, all_shard_rows, epoch_order, file_pieces, share
from dtjob_trainer.errors import DataError


@dataclass(kw_only=True, eq=False)  # a program may keep it as the key of a dict, such as that of functools.cache
class DataContext:
    """What a data function is told: which shard of which epoch to deliver, and from where on.

    A function given to `fit` as `x` is called once for each epoch and returns an unbatched `tf.data.Dataset` of this
    shard's examples in this epoch. `shuffled(n)` gives it the indices to deliver, in order, and `files(counts)` the
    parts of files; data is then sharded before it is decoded, and a restart goes on where it stopped.
    """

    seed: int
    """Seed of the data order."""
    epoch: int
    """Number of the epoch, from 0."""
    shard: int
    """Which shard this task delivers, from 0."""
    shards: int
    """How many tasks share each batch."""
    batch_size: int
    """Size of the global batch, of which this shard delivers its share."""
    first_step: int = 0
    """The step of the epoch from which on to deliver; above 0 only after a restart."""
    shuffle: bool = True
    """Whether examples come in a new order in each epoch."""
    drop_last: bool = False
    """Whether a last batch that is not full is left out."""
    eras: Eras = ()
    """How many tasks have shared the batches of this epoch so far, where that has changed."""
    sizes: Sizes | None = field(default=None, init=False)
    """Sizes of the steps, once `shuffled` or `files` has told how many examples there are."""
    by_file: bool = field(default=False, init=False)
    """Whether it was `files` that told."""

    def shuffled(self, n: int) -> Rows:
        """Indices (int64) into a data set of `n` examples: this shard's, this epoch's, from `first_step` on.

        Validation data comes in order. Raises DataError where `n` is below 1.
        """
        if n < 1:
            raise DataError(f"DataContext.shuffled({n}): the data set must have at least one example")
        self.sizes = Sizes(n, self.batch_size, self.drop_last)
        order = epoch_order(n, self.seed, self.epoch) if self.shuffle else np.arange(n, dtype=np.int64)
        return all_shard_rows(order, self.sizes, self.shard, self.shards, self.first_step)

    def files(self, counts: Sequence[int]) -> Rows:
        """What this shard reads of files that hold `counts` examples: rows (int64) of (file, first example, examples).

        File is an index into `counts`. Read in the order of the rows, they are this shard's examples of this epoch from
        `first_step` on; all shards together read every example once, and few files are read by more than one. Files
        come in a new order in each epoch (validation's as they are), the examples of one file in theirs. Raises
        DataError where there are no examples, or fewer than none.
        """
        found = np.asarray(counts, np.int64)
        if found.ndim != 1 or found.sum() < 1 or found.min() < 0:
            raise DataError(
                f"DataContext.files({counts!r}): give the number of examples in each file, one or more in all"
            )
        self.sizes, self.by_file = Sizes(int(found.sum()), self.batch_size, self.drop_last), True
        files = epoch_order(len(found), self.seed, self.epoch) if self.shuffle else np.arange(len(found))
        return file_pieces(files, found, self.sizes, self.shard, self.shards, self.first_step, self.eras)


def make(function: Callable[..., Any], batch_size: int, place: Place, wanted: Wanted) -> Source:
    """The source of a data function, whichever arguments it takes. `batch_size`: examples of a batch of all tasks.

    Raises DataError for a function that takes neither a DataContext nor nothing.
    """
    if takes(function, 1):
        return FunctionSource(function, batch_size, place, wanted)
    if takes(function, 0):
        return WholeFunctionSource(function, batch_size, place, wanted)
    raise DataError(
        f"{wanted.argument}: the data function must take one argument, the DataContext, or none; it is "
        f"{getattr(function, '__name__', type(function).__name__)}{inspect.signature(function)}"
    )


def takes(function: Callable[..., Any], arguments: int) -> bool:
    """Whether `function` can be called with so many arguments, as far as it tells."""
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # it does not tell: one that is written in C
        return arguments == 1
    return True


class FunctionSource(Source):
    """A function of DataContext that returns this shard's unbatched Dataset, called anew for each pass."""

    may_look_again = True
    """Whether its examples may be read beside a pass."""

    def __init__(self, function: Callable[[DataContext], Any], batch_size: int, place: Place, wanted: Wanted) -> None:
        """`batch_size`: examples of a batch of all tasks, instead of `wanted.batch_size`."""
        self._function, self._batch_size, self._place, self._wanted = function, batch_size, place, wanted
        self._eras: Eras = ()
        self._repeats = False
        dataset, context = self._call(0, 0)
        sizes, asked = context.sizes, context.sizes is not None
        in_turn = not asked or context.by_file  # whether the size of batches decides the order of the examples
        if batch_size < place.shards and in_turn:
            raise DataError(
                f"batch_size={batch_size} is less than the {place.shards} tasks that share a batch; give one for "
                "each of them, or let the data function take its indices from context.shuffled(n)"
            )
        _check(dataset, wanted, place)
        self.batch, self.cut_by_batch = batch_size, place.shards > 1 and in_turn
        self.own_shares = not asked and not place.remote
        if sizes is None and place.shards == 1 and int(dataset.cardinality()) > 0:
            sizes = Sizes(int(dataset.cardinality()), batch_size, wanted.drop_last)
        self.most = min((most for most in (wanted.steps, wanted.at_most) if most is not None), default=None)
        if sizes is None:
            check_end(dataset, wanted)
            self._repeats = wanted.endless  # nobody knows where a pass ends: one that has none
            dataset = dataset.repeat() if self._repeats else dataset
            self.steps, self.may_be_empty = None, place.replicas > 1
            self.own_ends = place.shards > 1 and not wanted.drop_last
        else:
            sizes.check(wanted.argument)
            if wanted.steps is not None and wanted.steps > sizes.steps:
                batches = f"{wanted.argument} has {sizes.steps} batches of {batch_size}"
                raise DataError(f"{wanted.steps_argument}={wanted.steps}, but {batches}")
            self.steps = self.most = min(sizes.steps, self.most or sizes.steps)
            self.may_be_empty = sizes.smallest_share(place.replicas) == 0
        self.sizes = sizes
        self._spec = dataset.batch(1).element_spec
        self.element_spec = elements.any_batches(self._spec)
        self.inexact = randomness.unrepeatable(dataset, from_begin=not asked)
        self._first: tuple[int, tuple[Any, ...]] | None = None
        """A pass and its first row."""

    def shared(self, eras: Eras) -> None:
        """Told how many tasks have shared the batches of the pass so far."""
        self._eras = eras

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """The batches of pass `number`; where the function did not ask for indices, earlier examples are skipped.

        Of data of unknown length, `total` of a batch counts this task's examples alone.
        """
        for step, batch in enumerate(super().epoch(number, first_step), first_step):
            if step == 0 and self.own_ends:
                first = keras.tree.map_structure(lambda part: elements.rows_of(part, 0, 1), batch.inputs)
                self._first = number, first
            yield batch

    def elements(self, number: int, first_step: int) -> Any:
        """The Dataset of this shard's batches of pass `number`, from `first_step` on."""
        dataset, context = self._call(number, first_step)
        low, high = share(self._batch_size, self._place.shard, self._place.shards)
        if context.sizes is None and first_step:
            dataset = dataset.skip(first_step * (high - low))
        whole = self.sizes is None and self._wanted.drop_last
        return dataset.batch(max(high - low, 1), drop_remainder=whole).prefetch(2)

    def cut(self, element: Any, step: Any) -> Batch:
        """In the graph: all of a batch, where it has as many rows as this shard's share of that step."""
        inputs = elements.as_inputs(element)
        rows = elements.rows_within(inputs)
        if self.sizes is None:
            return Batch(inputs, rows, rows)
        total = tf.minimum(self.sizes.batch, self.sizes.n - step * self.sizes.batch)
        begin, end, count = elements.share_within(total, self._place)
        return Batch(inputs, count, total, fits=tf.equal(rows, end - begin))

    def complain(self, element: Any, step: int) -> NoReturn:
        """Say how many examples there should be."""
        assert self.sizes is not None
        given = int(elements.rows_within(element))
        low, high = share(self.sizes.at(step), self._place.shard, self._place.shards)
        raise DataError(
            f"{self._wanted.argument}: the data function gave {given} examples for step {step} of the epoch, but "
            f"this task's share of the batch are {high - low}; give them all, or a smaller "
            f"{self._wanted.steps_argument}, or take the indices from context.shuffled(n)"
        )

    def ended(self, number: int, step: int) -> None:
        """Raise DataError where it is known that there must be more."""
        if self.sizes is not None:
            raise DataError(
                f"{self._wanted.argument}: the Dataset ended before its epoch; give a smaller "
                f"{self._wanted.steps_argument}, or all that the data function was asked for"
            )

    def stand_in(self, number: int) -> tuple[Any, ...]:
        """This task's first row of pass `number`, as a made-up one may have no logarithm; of ones where it has none."""
        if self._first is None or self._first[0] != number:  # a restarted run begins within the pass
            rows = self._call(number, 0)[0].take(1).batch(1) if self.may_look_again else ()
            row = next(iter(rows), None)
            made_up = keras.tree.map_structure(elements.made_up_row, self._spec) if row is None else row
            self._first = number, elements.as_inputs(made_up)
        return self._first[1]

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of the parts of an element, with a batch dimension."""
        return elements.as_inputs(self.element_spec)

    def _call(self, epoch: int, first_step: int) -> tuple[Any, DataContext]:
        """What the function gives, without an end where it is passed over so, and what it was given."""
        context = DataContext(
            seed=self._wanted.seed,
            epoch=epoch,
            shard=self._place.shard,
            shards=self._place.shards,
            batch_size=self._batch_size,
            first_step=first_step,
            shuffle=self._wanted.shuffle,
            drop_last=self._wanted.drop_last,
            eras=self._eras if first_step else (),
        )
        dataset = self._function(context)
        return dataset.repeat() if self._repeats else dataset, context


class WholeFunctionSource(DatasetSource):
    """A function of no argument that returns the unbatched Dataset of all examples, called anew for each pass.

    It is the same in every task, which takes its rows of each batch.
    """

    made_once = False

    def __init__(self, function: Callable[[], Any], batch_size: int, place: Place, wanted: Wanted) -> None:
        self._function = function
        self._batch_size, self._drop_last = batch_size, wanted.drop_last
        dataset = function()
        _check(dataset, wanted, place)
        self._repeats = wanted.endless and int(dataset.cardinality()) < 0  # nobody knows where a pass ends
        super().__init__(self._batched(dataset), place, wanted)
        self.element_spec, self.batch = elements.any_batches(self.element_spec), batch_size

    def _pass(self, number: int) -> Any:
        return self._batched(self._function()).with_options(self._dataset.options())

    def _batched(self, dataset: Any) -> Any:
        """In batches, without an end where it is passed over so."""
        dataset = dataset.repeat() if self._repeats else dataset
        return dataset.batch(self._batch_size, drop_remainder=self._drop_last)


def _check(dataset: Any, wanted: Wanted, place: Place) -> None:
    """Raise DataError for what no data function may return."""
    if not isinstance(dataset, tf.data.Dataset):
        kind = type(dataset).__name__
        raise DataError(f"{wanted.argument}: the data function must return a tf.data.Dataset, not {kind}")
    elements.check(dataset.element_spec, wanted.argument, remote=place.remote)
