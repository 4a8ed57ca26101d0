# SPDX-License-Identifier: Apache-2.0
"""Which source the user's data needs, whatever it is in, or what to write instead."""

import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import elements
from dtjob_trainer.data import function as functions
from dtjob_trainer.data.arrays import ArraySource, Sliced, can_slice, each
from dtjob_trainer.data.batches import Place, Source, Wanted
from dtjob_trainer.data.dataset import DatasetSource
from dtjob_trainer.data.python_batches import GeneratorSource, PyDatasetSource, is_sequence
from dtjob_trainer.data.sharding import Sizes, common_length
from dtjob_trainer.errors import DataError

DEFAULT_BATCH_SIZE = 32
"""As in Keras."""

_BATCHED: dict[type, tuple[str, Callable[[Any, Place, Wanted], Source]]] = {
    tf.data.Dataset: ("Dataset", DatasetSource),
    keras.utils.PyDataset: ("PyDataset", PyDatasetSource),
    types.GeneratorType: ("generator", GeneratorSource),
}
"""What brings its own batches: its type, its name in messages, its source."""

_INSTEAD_OF_LOADER = (
    "hands out batches that no other task can have by their number; give a keras.utils.PyDataset whose __getitem__ "
    "makes a batch of the rows of {what}, or tf.data.Dataset.from_generator(lambda: loader, output_signature=…)"
)
_LOADERS = {
    "DataLoader": _INSTEAD_OF_LOADER.format(what="loader.dataset"),
    "MapDataset": _INSTEAD_OF_LOADER.format(what="the MapDataset"),
    "IterDataset": _INSTEAD_OF_LOADER.format(what="what it reads"),
}
"""Torch's and Grain's data by the names of their classes, and what to write instead."""

_KINDS = (
    "arrays, a batched tf.data.Dataset (tf.data.Dataset.from_generator makes one), a keras.utils.PyDataset, or a data "
    "function: a function of DataContext that returns this task's share"
)


def make(x: Any, y: Any, sample_weight: Any, wanted: Wanted, place: Place) -> Source:
    """The source for what the user gave. Raises DataError where it cannot be trained on as `wanted`."""
    name = name_of(x)
    if name is not None and (y is not None or sample_weight is not None):
        raise DataError(
            f"{wanted.argument}: a {name} brings its own targets and weights; leave out y and sample_weight"
        )
    if is_batched(x) and wanted.batch_size is not None:
        raise DataError(f"{wanted.argument}: a {name} brings its own batches; leave out batch_size")
    for kind, (_, source) in _BATCHED.items():
        if isinstance(x, kind):
            return source(x, place, wanted)
    if isinstance(x, tf.distribute.DistributedDataset):
        raise DataError(
            f"{wanted.argument}: fit shares a Dataset among replicas by itself; take the call of "
            "experimental_distribute_dataset() or distribute_datasets_from_function() away, and give the Dataset"
        )
    if callable(x):
        return functions.make(x, _batch_size(wanted, place), place, wanted)
    arrays = as_arrays(x, y, sample_weight, wanted.argument)
    n = common_length(keras.tree.flatten(arrays), wanted.argument)
    steps = wanted.steps or wanted.at_most
    if wanted.batch_size is None and steps is not None:  # as in Keras
        wanted = replace(wanted, batch_size=math.ceil(n / steps))
    sizes = Sizes(n, _batch_size(wanted, place), wanted.drop_last)
    if place.remote and any(isinstance(leaf, Sliced) for leaf in keras.tree.flatten(arrays)):
        raise DataError(elements.cannot_leave(wanted.argument))
    sizes.check(wanted.argument)
    return ArraySource(arrays, sizes, place, wanted)


def is_batched(x: Any) -> bool:
    """Whether `x` brings its own batches."""
    return isinstance(x, tuple(_BATCHED))


def name_of(x: Any) -> str | None:
    """What messages call data that brings its own batches, or a function. None of any other."""
    known = (name for kind, (name, _) in _BATCHED.items() if isinstance(x, kind))
    return next(known, "data function" if callable(x) else None)


def _batch_size(wanted: Wanted, place: Place) -> int:
    """Examples of a batch."""
    size = wanted.batch_size if wanted.batch_size is not None else DEFAULT_BATCH_SIZE
    return max(size, place.replicas) if wanted.any_batch_size else size


def as_arrays(x: Any, y: Any, sample_weight: Any, argument: str) -> tuple[Any, Any, Any]:
    """All of them as NumPy has them. Raises DataError where they are no arrays, or weights without targets."""
    if sample_weight is not None and y is None:
        raise DataError(f"{argument}: sample_weight weighs the losses of y; give y as well, or leave it out")
    if x is None:
        raise DataError(f"{argument} is missing; give {_KINDS}")
    x, y, sample_weight = (_listed(part, argument) for part in (x, y, sample_weight))
    if keras.tree.is_nested(y) and sample_weight is not None and not keras.tree.is_nested(sample_weight):
        sample_weight = keras.tree.map_structure(lambda _: sample_weight, y)  # as in Keras: one for every output
    if sample_weight is not None and _names(sample_weight) != _names(y):
        raise DataError(
            f"{argument}: sample_weight and y differ in their outputs; give one for each output of y, or None"
        )
    found = each(lambda value: _array(value, argument), (x, y, sample_weight))
    return found[0], found[1], found[2]


def _names(part: Any) -> Any:
    """The names of a mapping, or how many a list or tuple has; None of an array."""
    if isinstance(part, Mapping):
        return set(part)
    return len(part) if isinstance(part, list | tuple) else None


def _listed(part: Any, argument: str) -> Any:
    """`part`, or where it is a list of numbers (or texts), however deep, the array of them. Else lists are structures.

    Raises DataError for lists of unequal lengths.
    """
    if not isinstance(part, list | tuple) or not part or not _is_plain(part):
        return part
    try:
        return np.array(part)
    except ValueError:
        raise DataError(
            f"{argument}: lists of unequal lengths make no array; fill them up, or give a Dataset of ragged tensors"
        ) from None


def _is_plain(part: Any) -> bool:
    return all(
        _is_plain(each)
        if isinstance(each, list | tuple)
        else isinstance(each, int | float | complex | str | bytes | np.generic)
        for each in part
    )


def _array(value: Any, argument: str) -> Any:
    """As NumPy, floats in Keras's default precision and a pandas Series as a column (as in Keras).

    Raises DataError for what is no array: scalars, sequences that are none, arrays of objects.
    """
    kind = f"{type(value).__module__.partition('.')[0]}'s {type(value).__name__}"
    if isinstance(value, int | float | complex | str | bytes):
        raise DataError(f"{argument}: a list holds numbers beside arrays; give np.array(…) of the numbers")
    if can_slice(value):
        return Sliced(value)
    if not hasattr(value, "__array__"):  # np.asarray would read all of a sequence
        if type(value).__name__ in _LOADERS:
            raise DataError(f"{argument}: {kind} {_LOADERS[type(value).__name__]}")
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
    return array.astype(keras.config.floatx(), copy=False) if array.dtype.kind == "f" else array


Arrays = tuple[Any, Any, Any]
"""x, y and sample weights."""


def check_split(fraction: Any) -> None:
    """Raise DataError for what is no fraction of the examples."""
    if isinstance(fraction, str) or not 0 <= fraction < 1:
        raise DataError(f"validation_split={fraction!r} must be a fraction of the examples: 0.2 for the last fifth")


def split(x: Any, y: Any, sample_weight: Any, fraction: float) -> tuple[Arrays, Arrays]:
    """What to train on, and the last `fraction` of the examples to validate on, in the order in which they were given.

    Raises DataError for what has no rows to be told apart, and where one of both would have none.
    """
    if kind := "Sequence" if is_sequence(x) else name_of(x):
        raise DataError(
            f"validation_split: it takes the last rows of arrays, and nobody knows those of a {kind}; give "
            "validation_data, as take(n) of a Dataset beside skip(n) for x"
        )
    arrays = as_arrays(x, y, sample_weight, "x")
    n = common_length(keras.tree.flatten(arrays), "x")
    at = math.floor(n * (1.0 - fraction))
    if at in (0, n):
        raise DataError(
            f"validation_split={fraction}: of {n} examples it leaves none to {'train' if at == 0 else 'validate'} on; "
            "give more of them, or another fraction"
        )

    def part(begin: int, end: int) -> Arrays:
        rows = np.arange(begin, end)
        cut = each(lambda leaf: leaf[rows] if isinstance(leaf, Sliced) else leaf[begin:end], arrays)
        return cut[0], cut[1], cut[2]

    return part(0, at), part(at, n)


def weigh(source: Source, class_weight: Mapping[int, float]) -> None:
    """Have the examples of `source` weighted by their class, the number or the largest entry of a one-hot row.

    As in Keras, a class that is not named counts once. Raises DataError if `source` has weights already, or no targets
    that are one tensor.
    """
    _, y, weights = source.spec()
    if weights is not None:
        raise DataError("class_weight: there are sample weights already; multiply the two in your program")
    if not isinstance(y, tf.TensorSpec):
        raise DataError("class_weight: the targets must be one array; weigh several outputs with sample_weight")
    classes, of_class = [int(label) for label in class_weight], [float(weight) for weight in class_weight.values()]

    def weights_of(y: Any) -> Any:
        if y.shape.rank > 1:
            y = tf.argmax(y, -1) if y.shape[-1] != 1 else tf.squeeze(y, -1)
        labels = tf.cast(tf.round(y) if y.dtype.is_floating else y, tf.int64)
        found = tf.equal(tf.expand_dims(labels, -1), tf.constant(classes, tf.int64))
        named = tf.reduce_sum(tf.where(found, tf.constant(of_class, keras.config.floatx()), 0), -1)
        return tf.where(tf.reduce_any(found, -1), named, 1)

    source.weights_of = weights_of
