"""Arrays, a `tf.data.Dataset` or a data function: which source the user's data needs, or what to write instead."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data.arrays import ArraySource
from dtjob_trainer.data.batches import Place, Source
from dtjob_trainer.data.dataset import DatasetSource
from dtjob_trainer.data.function import FunctionSource
from dtjob_trainer.data.sharding import Sizes, common_length, less_than_a_batch
from dtjob_trainer.errors import DataError

DEFAULT_BATCH_SIZE = 32
"""As in Keras."""

_KINDS = (
    "arrays, a batched tf.data.Dataset (tf.data.Dataset.from_generator makes one), or a data function: a function of "
    "DataContext that returns this task's share"
)


def make(
    x: Any,
    y: Any,
    sample_weight: Any,
    *,
    batch_size: int | None,
    steps: int | None,
    place: Place,
    seed: int,
    shuffle: bool,
    drop_last: bool,
    argument: str,
    at_most: int | None = None,
) -> Source:
    """The source for what the user gave as `argument`. Raises DataError where it cannot be trained on as asked.

    `steps` make an epoch, after which the next one goes on in the data; `at_most` instead takes only so many of the
    data's first batches, in every epoch the same.
    """
    brings_targets = isinstance(x, tf.data.Dataset) or callable(x)
    if brings_targets and (y is not None or sample_weight is not None):
        kind = "Dataset" if isinstance(x, tf.data.Dataset) else "data function"
        raise DataError(f"{argument}: a {kind} brings its own targets and weights; leave out y and sample_weight")
    if isinstance(x, tf.data.Dataset):
        if batch_size is not None:
            raise DataError(f"{argument}: a Dataset brings its own batches; leave out batch_size")
        return DatasetSource(x, steps, place, argument, at_most=at_most)
    if batch_size is None:
        batch_size = DEFAULT_BATCH_SIZE
    if argument == "validation_data":
        batch_size = max(batch_size, place.replicas)  # its results do not depend on it
    if batch_size < place.replicas:
        raise DataError(
            f"batch_size={batch_size} is the size of the global batch and must be at least the number of replicas, "
            f"{place.replicas}"
        )
    if callable(x):
        return FunctionSource(
            x,
            batch_size,
            steps,
            place,
            seed=seed,
            shuffle=shuffle,
            drop_last=drop_last,
            argument=argument,
            at_most=at_most,
        )
    if sample_weight is not None and y is None:
        raise DataError(f"{argument}: sample_weight weighs the losses of y; give y as well, or leave it out")
    if keras.tree.is_nested(y) and sample_weight is not None and not keras.tree.is_nested(sample_weight):
        sample_weight = keras.tree.map_structure(lambda _: sample_weight, y)  # as in Keras: one for every output
    if x is None:
        raise DataError(f"{argument} is missing; give {_KINDS}")
    arrays = keras.tree.map_structure(lambda value: _array(value, argument), (x, y, sample_weight))
    n = common_length([leaf for leaf in keras.tree.flatten(arrays) if leaf is not None], argument)
    sizes = Sizes(n, batch_size, drop_last)
    if sizes.steps == 0:
        raise DataError(less_than_a_batch(argument, sizes))
    return ArraySource(arrays, sizes, steps, place, seed if shuffle else None, at_most=at_most)


def _array(value: Any, argument: str) -> Any:
    """As NumPy, floats in Keras's default precision and a pandas Series as a column (as in Keras).

    Raises DataError for what is no array: scalars, generators and the like, sparse matrices, arrays of objects.
    """
    if value is None:
        return None
    kind = f"{type(value).__module__.partition('.')[0]}'s {type(value).__name__}"
    if isinstance(value, int | float | complex | str | bytes):
        raise DataError(f"{argument}: a list is a structure of arrays, here of single numbers; give np.array(…) of it")
    if hasattr(value, "toarray"):
        raise DataError(f"{argument}: {kind} is sparse and cannot be sharded; give {_KINDS}, such as its toarray()")
    if not hasattr(value, "__array__"):  # np.asarray would read all of a sequence
        raise DataError(f"{argument}: {kind} can be neither sharded nor resumed; give {_KINDS}")
    array = np.asarray(value)
    if array.ndim == 0:
        raise DataError(f"{argument}: an array of shape () has no examples; give {_KINDS}")
    if array.dtype.kind == "O" and not all(isinstance(each, str | bytes) for each in array.flat):
        raise DataError(
            f"{argument}: {kind} holds objects that are not all numbers; convert it, as by astype('float32')"
        )
    if isinstance(value, getattr(sys.modules.get("pandas"), "Series", ())):
        array = array[:, None]
    return array.astype(keras.config.floatx()) if array.dtype.kind == "f" else array
