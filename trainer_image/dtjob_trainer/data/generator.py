# SPDX-License-Identifier: Apache-2.0
"""A Python generator of batches, as Keras takes it."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data.batches import Place, Wanted
from dtjob_trainer.data.dataset import DatasetSource
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
        if not place.one_process:
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
            yield keras.tree.map_structure(_tensor, batch)

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


def _tensor(part: Any) -> Any:
    return datasets.from_scipy(part) if datasets.is_scipy_sparse(part) else part
