# SPDX-License-Identifier: Apache-2.0
"""Batches that Python code makes: a generator, a `keras.utils.PyDataset`, a `tf_keras.utils.Sequence`."""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data.batches import Place, Wanted
from dtjob_trainer.data.dataset import DatasetSource
from dtjob_trainer.data.sharding import epoch_order
from dtjob_trainer.errors import DataError
from dtjob_trainer.frameworks import datasets

SEEN_FIRST = 2
"""Batches that tell which types and shapes there are, as in Keras."""


class GeneratorSource(DatasetSource):
    """A generator, whose every batch is a global one. There is one pass, which a restarted run reads once more.

    Where all passes must be alike, its batches are kept in memory.
    """

    once = True
    reads_python = True

    def __init__(self, generator: Iterator[Any], place: Place, wanted: Wanted) -> None:
        """Raises DataError where there are several processes: no two of them would read the same batches."""
        if place.shards > 1 or place.remote:
            raise DataError(
                f"{wanted.argument}: a generator can be read once and by one process alone; give a "
                "keras.utils.PyDataset, or tf.data.Dataset.from_generator(…) of a function that every task can call"
            )
        first = [standard(batch, wanted.argument) for batch in islice(generator, SEEN_FIRST)]
        if not first:
            raise DataError(f"{wanted.argument}: the generator has no batches")
        every = chain(first, (standard(batch, wanted.argument) for batch in generator))
        dataset = dataset_of(lambda: every, first)
        if wanted.alike:  # what was read is gone
            dataset = (dataset if wanted.at_most is None else dataset.take(wanted.at_most)).cache()
        super().__init__(dataset, place, wanted)


def dataset_of(batches: Any, first: list[Any]) -> Any:
    """The Dataset of what `batches()` iterates over; of its types are `first`, some of its batches.

    Batches are as `standard` gives them.
    """
    signature = datasets.tensor_spec(first)

    def tensors() -> Iterable[Any]:
        for batch in batches():
            yield keras.tree.map_structure(
                lambda part: datasets.from_scipy(part) if datasets.is_scipy_sparse(part) else part, batch
            )

    return tf.data.Dataset.from_generator(tensors, output_signature=signature)


def standard(batch: Any, argument: str) -> Any:
    """`batch` as (x,), (x, y) or (x, y, sample weights). Raises DataError for anything else."""
    if isinstance(batch, dict) or hasattr(batch, "__array__"):
        batch = (batch,)
    if not isinstance(batch, tuple | list) or len(batch) not in (1, 2, 3):
        raise DataError(
            f"{argument}: a batch must be (x,), (x, y) or (x, y, sample weights), not a {type(batch).__name__}"
        )
    while batch and batch[-1] is None:
        batch = batch[:-1]
    return tuple(batch)


class PyDatasetSource(DatasetSource):
    """A PyDataset, whose every item is a global batch; each task reads all of them by number and takes its rows.

    What comes before the step at which a restarted run goes on is never read.
    """

    reads_python = True

    def __init__(self, data: Any, place: Place, wanted: Wanted) -> None:
        """`wanted.shuffle`: give the batches a new order in each pass, unless there is no end of them (as Keras)."""
        self._data, self._argument = data, wanted.argument
        batches = data.num_batches
        if batches == 0:
            raise DataError(f"{wanted.argument}: the PyDataset has no batches; its __len__ returned 0")
        if batches is None and wanted.steps is None and wanted.at_most is None:
            raise DataError(f"{wanted.argument}: the PyDataset has no end; give {wanted.steps_argument}")
        self._seed = wanted.seed if wanted.shuffle else None
        self._indices: Sequence[int] = ()
        self._at_first = None if isinstance(data, SequenceAsPyDataset) else batches
        """The most batches of a pass: Keras 3 asks a PyDataset for its length once."""
        self._parallel = data.workers > 1 or (data.workers > 0 and data.use_multiprocessing)
        seen = range(SEEN_FIRST if batches is None else min(SEEN_FIRST, batches))
        dataset = dataset_of(self._batches, [standard(data[index], wanted.argument) for index in seen])
        if self._parallel:  # as Keras has it: there are threads or processes enough
            one_thread = tf.data.Options()
            one_thread.autotune.enabled = False
            one_thread.threading.private_threadpool_size = 1
            dataset = dataset.with_options(one_thread)
        super().__init__(dataset, place, wanted)
        self.cut_by_batch = self._seed is not None
        spans = wanted.steps is not None and (batches is None or wanted.steps < batches)
        if isinstance(data, SequenceAsPyDataset):
            changes = data.changes_with_epochs
        else:
            hears = ("on_epoch_begin", "on_epoch_end")
            changes = any(getattr(type(data), name) is not getattr(keras.utils.PyDataset, name) for name in hears)
        if spans and changes:
            self.inexact = (
                "batches of the PyDataset are read ahead before its on_epoch_end(); leave out steps_per_epoch"
            )
        if batches is not None:
            self.steps = min(batches, wanted.at_most or batches)

    def epoch_begins(self) -> None:
        """Tell the PyDataset, as Keras does."""
        self._data.on_epoch_begin()

    def epoch_ends(self) -> None:
        """Tell the PyDataset, which may shuffle its examples then."""
        self._data.on_epoch_end()

    def elements(self, number: int, first_step: int) -> Any:
        """The items of pass `number` in their order, from `first_step` on."""
        batches = self._data.num_batches
        if batches is None:
            self._indices = range(first_step, sys.maxsize)
        elif self._seed is None:
            self._indices = range(batches)[first_step : self._at_first]
        else:
            self._indices = epoch_order(batches, self._seed, number)[first_step : self._at_first].tolist()
        return self._dataset if self._parallel else self._dataset.prefetch(2)  # workers have a queue of their own

    def _batches(self) -> Iterator[Any]:
        """The batches of `_indices`, read by the PyDataset's workers where it has several."""
        items = _by_workers(self._data, self._indices) if self._parallel else map(self._data.__getitem__, self._indices)
        for item in items:
            yield standard(item, self._argument)


class _Chosen(keras.utils.PyDataset):  # type: ignore[misc]
    """Some items of a PyDataset, in the order in which they are wanted."""

    def __init__(self, data: Any, indices: Sequence[int]) -> None:
        super().__init__(data.workers, data.use_multiprocessing, data.max_queue_size)
        self._data, self._indices = data, indices

    @property
    def num_batches(self) -> int:
        """How many they are."""
        return len(self._indices)

    def __getitem__(self, index: int) -> Any:
        return self._data[self._indices[index]]


def _by_workers(data: Any, indices: Sequence[int]) -> Iterator[Any]:
    """Those items of `data`, read ahead by Keras's own workers."""
    items = datasets.by_workers(_Chosen(data, indices), data.workers, data.use_multiprocessing, data.max_queue_size)
    with contextlib.closing(items):
        yield from islice(items, len(indices))


class SequenceAsPyDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """A Sequence with the workers that tf_keras's `fit` is given for it, told of epochs' ends as tf_keras tells it."""

    def __init__(self, sequence: Any, *, workers: int, use_multiprocessing: bool, max_queue_size: int) -> None:
        super().__init__(workers, use_multiprocessing, max_queue_size)
        self._sequence = sequence
        self._within = False

    @property
    def changes_with_epochs(self) -> bool:
        """Whether it may give other examples once it is told of an epoch's end: tf_keras's own method does nothing."""
        method = getattr(type(self._sequence), "on_epoch_end", None)
        return method is not None and not method.__module__.startswith("tf_keras.")

    def __len__(self) -> int:
        return len(self._sequence)

    def __getitem__(self, index: int) -> Any:
        return self._sequence[index]

    def on_epoch_begin(self) -> None:
        """Note that an epoch has begun, of which a Sequence is not told."""
        self._within = True

    def on_epoch_end(self) -> None:
        """Tell the Sequence; not before the first epoch and each validation, as Keras 3 tells a PyDataset."""
        if self._within and hasattr(self._sequence, "on_epoch_end"):
            self._sequence.on_epoch_end()
        self._within = False


def is_sequence(x: Any) -> bool:
    """Whether `x` is a Sequence of tf_keras, which is not imported for that."""
    return any(base.__module__.startswith("tf_keras.") and base.__name__ == "Sequence" for base in type(x).__mro__)
