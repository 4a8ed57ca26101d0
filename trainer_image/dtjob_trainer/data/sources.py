"""Arrays, a `tf.data.Dataset` or a data function: which source the user's data needs, or what to write instead."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data.arrays import ArraySource
from dtjob_trainer.data.batches import Place, Source, Wanted
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


def make(x: Any, y: Any, sample_weight: Any, wanted: Wanted, place: Place) -> Source:
    """The source for what the user gave. Raises DataError where it cannot be trained on as `wanted`."""
    if isinstance(x, tf.data.Dataset):
        _check_alone(x, y, sample_weight, wanted)
        if wanted.batch_size is not None:
            raise DataError(f"{wanted.argument}: a Dataset brings its own batches; leave out batch_size")
        return DatasetSource(x, place, wanted)
    if callable(x):
        _check_alone(x, y, sample_weight, wanted)
        return FunctionSource(x, _batch_size(wanted, place), place, wanted)
    batch_size = _batch_size(wanted, place)
    arrays = _arrays(x, y, sample_weight, wanted.argument)
    n = common_length([leaf for leaf in keras.tree.flatten(arrays) if leaf is not None], wanted.argument)
    sizes = Sizes(n, batch_size, wanted.drop_last)
    if sizes.steps == 0:
        raise DataError(less_than_a_batch(wanted.argument, sizes))
    return ArraySource(arrays, sizes, place, wanted)


def _check_alone(x: Any, y: Any, sample_weight: Any, wanted: Wanted) -> None:
    """Raise DataError where there are targets or weights beside data that brings its own."""
    if y is not None or sample_weight is not None:
        kind = "Dataset" if isinstance(x, tf.data.Dataset) else "data function"
        raise DataError(
            f"{wanted.argument}: a {kind} brings its own targets and weights; leave out y and sample_weight"
        )


def _batch_size(wanted: Wanted, place: Place) -> int:
    """Examples of a batch. Raises DataError where they are fewer than replicas and cannot be more."""
    size = wanted.batch_size if wanted.batch_size is not None else DEFAULT_BATCH_SIZE
    if wanted.any_batch_size:
        return max(size, place.replicas)
    if size < place.replicas:
        raise DataError(
            f"batch_size={size} is the size of the global batch and must be at least the number of replicas, "
            f"{place.replicas}"
        )
    return size


def _arrays(x: Any, y: Any, sample_weight: Any, argument: str) -> tuple[Any, Any, Any]:
    """All of them as NumPy has them. Raises DataError where they are no arrays, or weights without targets."""
    if sample_weight is not None and y is None:
        raise DataError(f"{argument}: sample_weight weighs the losses of y; give y as well, or leave it out")
    if keras.tree.is_nested(y) and sample_weight is not None and not keras.tree.is_nested(sample_weight):
        sample_weight = keras.tree.map_structure(lambda _: sample_weight, y)  # as in Keras: one for every output
    if x is None:
        raise DataError(f"{argument} is missing; give {_KINDS}")
    found = keras.tree.map_structure(lambda value: _array(value, argument), (x, y, sample_weight))
    return found[0], found[1], found[2]


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
