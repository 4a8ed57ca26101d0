# SPDX-License-Identifier: Apache-2.0
"""The data that `train` was given, as its source. Every replica gets equally many examples at every step."""

import functools
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import tensorflow as tf

from dtjob_trainer.data import sources
from dtjob_trainer.data.batches import Batch, Place, Source, Wanted
from dtjob_trainer.data.dataset import rows_of_each_batch
from dtjob_trainer.errors import DataError
from dtjob_trainer.passes.epochs import Epochs
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group


def epochs_of(source: Source, group: Group, here: Runtime) -> Epochs:
    """Passes over `source`, one after another, as many as the loop takes."""
    warn = functools.cache(here.warn)
    return Epochs(source, group, steps=None, epochs=sys.maxsize, when_out="end the epoch", tell=warn, endless=True)


def make(data: Any, *, batch_size: int | None, total_steps: int, place: Place, seed: int) -> tuple[Source, int | None]:
    """The source of what `train` was given as `data`, and the examples of all replicas at each step.

    The number is None where it may change, which one replica alone allows. Raises DataError for data that cannot be
    trained on as asked.
    """
    if isinstance(data, tf.distribute.DistributedDataset):
        if place.remote:
            raise DataError(
                "data: under ParameterServer the chief hands out the examples; give arrays, a tf.data.Dataset or a "
                "data function, not a distributed dataset"
            )
        if batch_size is not None:
            raise DataError("data: a distributed dataset brings its own batches; leave out batch_size")
        return DistributedSource(data), None
    wanted = Wanted("data", "total_steps", batch_size, seed=seed, shuffle=True, drop_last=True, endless=True)
    if isinstance(data, tf.data.Dataset):
        rows = _rows_of_dataset(data, place)
        if int(data.cardinality()) < 0:  # one pass without an end
            data, wanted = data.repeat(), replace(wanted, steps=total_steps)
        return sources.make(data, None, None, wanted, place), rows
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
    return sources.make(data, None, None, wanted, place), size


def _rows_of_dataset(dataset: Any, place: Place) -> int | None:
    """Examples of a batch, where all have the same number. Raises DataError where it must be known and is not."""
    rows = rows_of_each_batch(dataset)
    if place.replicas > 1 and (rows is None or rows % place.replicas):
        raise DataError(
            f"data: with {place.replicas} replicas each batch must have the same number of examples, a multiple of "
            f"{place.replicas}; use .batch(SIZE, drop_remainder=True)"
        )
    return rows


class DistributedSource(Source):
    """A dataset that the program has distributed by the strategy's own methods. It starts anew after a restart."""

    steps = None
    may_be_empty = False
    inexact = "the program has distributed the data itself, so that it starts anew"
    argument, distributed = "data", True

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """All elements, whatever `first_step` is."""
        return (Batch((element,), 0, 0) for element in self._dataset)

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """An element as it is, in place of x."""
        return inputs[0], None, None

    def input_spec(self) -> tuple[Any, ...]:
        """Of distributed values."""
        return (self._dataset.element_spec,)
