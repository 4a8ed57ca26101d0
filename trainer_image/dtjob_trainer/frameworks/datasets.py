# SPDX-License-Identifier: Apache-2.0
"""Private parts of tf.data, and of what Keras reads data with."""

import functools
import glob
import inspect
import os
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks.hooks import Hook, attribute, imported, read

_plain: Callable[..., Any] = tf.autograph.experimental.do_not_convert
_ALL, _SERVE = tf.data.AUTOTUNE, "have data workers make examples"
_ADAPTERS = "keras.src.trainers.data_adapters"

INTERLEAVE = Hook(
    targets=("tensorflow.python.data.ops.interleave_op:_ParallelInterleaveDataset.__init__",),
    does="`Dataset.interleave` notes `deterministic=False`, which decides whether resume is exact.",
    gone="see whether a Dataset is in any order",
)

CACHE_FILE = Hook(
    targets=("tensorflow.python.data.ops.cache_op:_cache",),
    does="`Dataset.cache(FILE)` writes a file of its own in each task of several, and removes its lock after a kill.",
    gone="keep caches in files apart",
)

_HOMES = {
    "_AssertCardinalityDataset": "experimental.ops.cardinality",
    "_BatchDataset": "ops.batch_op",
    "_FilterDataset": "ops.filter_op",
    "_FlatMapDataset": "ops.flat_map_op",
    "_InterleaveDataset": "ops.interleave_op",
    "_MapDataset": "ops.map_op",
    "_OptionsDataset": "ops.dataset_ops",
    "_ParallelBatchDataset": "ops.batch_op",
    "_ParallelInterleaveDataset": "ops.interleave_op",
    "_ParallelMapDataset": "ops.map_op",
    "_PrefetchDataset": "ops.prefetch_op",
    "_RangeDataset": "ops.range_op",
    "_RepeatDataset": "ops.repeat_op",
    "_ShuffleDataset": "ops.shuffle_op",
    "_TakeDataset": "ops.take_op",
    "_TensorSliceDataset": "ops.from_tensor_slices_op",
    "_ZipDataset": "ops.zip_op",
    "CacheDataset": "ops.cache_op",
    "TFRecordDatasetV2": "ops.readers",
}
"""The modules of the kinds of Datasets that are known here by name."""
MAPS = frozenset({"_MapDataset", "_ParallelMapDataset"})
FILTER, FLAT_MAP, SHUFFLE, RECORDS = "_FilterDataset", "_FlatMapDataset", "_ShuffleDataset", "TFRecordDatasetV2"
INTERLEAVES = frozenset({"_InterleaveDataset", "_ParallelInterleaveDataset"})
RANGE = "_RangeDataset"
SLICES = frozenset({RANGE, "_TensorSliceDataset"})
"""Datasets that read no other and whose elements are given."""
BATCHES = frozenset({"_BatchDataset", "_ParallelBatchDataset"})
PASSED_OVER = frozenset({"_OptionsDataset", "_PrefetchDataset"})
"""Datasets that change no element and no order."""
REPEAT, TAKE, CACHE = "_RepeatDataset", "_TakeDataset", "CacheDataset"
KEEP_BATCHES = MAPS | PASSED_OVER | {"_AssertCardinalityDataset", CACHE, REPEAT, TAKE, "_ZipDataset"}
"""Datasets whose elements are made one by one of those that they read, in their order."""

map_function = attribute("_map_func", "have tasks map their own rows")
"""The function of a Dataset of `MAPS`, as TensorFlow keeps it."""
count_of = attribute("_count", "have tasks map their own rows")
"""The argument of `repeat()` or `take()`."""
drops_remainder = attribute("_drop_remainder", "have tasks map their own rows")
"""Whether `batch()` was told `drop_remainder`, as a tensor."""
to_tensors = imported("tensorflow.python.data.util.structure:to_tensor_list")
"""Given the spec of a Dataset and an element, its tensors as functions of the Dataset take them."""
from_tensors = imported("tensorflow.python.data.util.structure:from_compatible_tensor_list")
"""Given the spec of a Dataset and tensors, the element that they make up."""
tensor_spec = imported(f"{_ADAPTERS}.data_adapter_utils:get_tensor_spec")
"""The spec that Keras has for these batches of a generator."""
is_scipy_sparse = imported(f"{_ADAPTERS}.data_adapter_utils:is_scipy_sparse")
"""Whether it is a sparse matrix of SciPy."""
from_scipy = imported(f"{_ADAPTERS}.data_adapter_utils:scipy_sparse_to_tf_sparse")
"""A sparse matrix of SciPy as a `tf.SparseTensor`."""
sliceable = imported(f"{_ADAPTERS}.array_slicing:convert_to_sliceable")
"""What gives rows of a ragged or sparse tensor by their numbers, as Keras does."""


def kind_of(dataset: Any) -> str:
    """TensorFlow's name of the kind of a Dataset. Raises FrameworkError if TensorFlow has other names for them."""
    _see_kinds()
    return type(dataset).__name__


@functools.cache
def _see_kinds() -> None:
    for name, module in _HOMES.items():
        read(import_module(f"tensorflow.python.data.{module}"), name, "see what a Dataset consists of")


def inputs_of(dataset: Any) -> list[Any]:
    """The Datasets that a Dataset reads."""
    return list(read(dataset, "_inputs", "see what a Dataset consists of")())


def functions_of(dataset: Any) -> list[Any]:
    """The functions that a Dataset calls itself, each as TensorFlow has traced it."""
    wrappers = read(dataset, "_functions", "see whether the functions of a Dataset draw random numbers")()
    return [wrapper.function for wrapper in wrappers]


def made_again(parts: Sequence[Any], dataset: Any, seed: int) -> Any:
    """What these parts of a Dataset do, the last one first, done to `dataset` in any order. `seed`: that of shuffle().
    Raises KeyError for parts of other kinds than maps, filters, records in files and shuffle()."""
    for part in reversed(parts):
        if kind_of(part) not in PASSED_OVER:
            dataset = _part_again(part, dataset, seed)
    return dataset


def _part_again(part: Any, dataset: Any, seed: int) -> Any:
    kind = kind_of(part)
    if kind == SHUFFLE:
        if kind_of(dataset) in SLICES:  # a data worker would first take all that it can get, and lose it at its end
            return in_new_order(dataset, seed)
        return dataset.shuffle(read(part, "_buffer_size", _SERVE), seed=seed)
    if kind == RECORDS:
        type_, size = (read(part, name, _SERVE) for name in ("_compression_type", "_buffer_size"))
        return type(part)(dataset, type_, size, read(part, "_num_parallel_reads", _SERVE))
    (before,), spec = inputs_of(part), dataset.element_spec
    function = read(part, "_predicate" if kind == FILTER else "_map_func", _SERVE)

    def call(*element: Any) -> Any:
        whole = element if isinstance(spec, tuple) else element[0]
        return from_tensors(function.output_structure, function.function(*to_tensors(before.element_spec, whole)))

    do = _plain(call)
    if kind in INTERLEAVES:
        # Without num_parallel_calls, every data worker makes all elements after shuffle() (TensorFlow 2.21).
        cycle, block = (read(part, name, _SERVE) for name in ("_cycle_length", "_block_length"))
        return dataset.interleave(do, cycle, block, num_parallel_calls=_ALL, deterministic=False)
    if kind in MAPS:
        return dataset.map(do, num_parallel_calls=_ALL, deterministic=False)
    return {FILTER: dataset.filter, FLAT_MAP: dataset.flat_map}[kind](do)


def in_new_order(slices: Any, seed: int) -> Any:
    """A Dataset of `SLICES` in an order of this seed. Each of its elements comes from an element of `range()`."""
    count, seeds = int(slices.cardinality()), tf.constant([seed, 0], tf.int64)
    if not all(isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(slices.element_spec)):
        return slices.shuffle(max(count, 1), seed=seed)  # sparse and ragged rows
    order = tf.random.experimental.index_shuffle
    numbers = tf.data.Dataset.range(count).map(_plain(lambda at: order(at, seeds, tf.cast(count - 1, tf.int64))))
    if kind_of(slices) == RANGE:
        start, step = (tf.cast(read(slices, name, _SERVE), tf.int64) for name in ("_start", "_step"))
        return numbers.map(_plain(lambda at: tf.cast(start + step * at, slices.element_spec.dtype)))
    whole = next(iter(slices.batch(max(count, 1))), None)
    return numbers.map(_plain(lambda at: tf.nest.map_structure(lambda part: part[at], whole)))


def reads_resources(dataset: Any) -> bool:
    """Whether a function of a Dataset reads what its process has, such as a variable or a table."""
    taken = (tensor for function in functions_of(dataset) for tensor in function.captured_inputs)
    return any(tensor.dtype == tf.resource for tensor in taken)


def parallel_calls(dataset: Any) -> Any:
    """How many calls of the function of a Dataset of `MAPS` run at once; None: one after another."""
    return getattr(dataset, "_num_parallel_calls", None)


def batch_size(dataset: Any) -> Any:
    """The argument of `batch()`; None of any other Dataset."""
    if kind_of(dataset) in BATCHES:
        return read(dataset, "_batch_size", "know how many examples a batch has")
    return getattr(dataset, "_batch_size", None)


def is_in_memory(dataset: Any) -> bool:
    """Whether a Dataset of `cache()` keeps its elements in memory."""
    return not read(dataset, "_filename", "have tasks map their own rows").numpy()


def is_in_any_order(dataset: Any) -> bool:
    """Whether this part of a Dataset was told `deterministic=False`."""
    if kind_of(dataset) in ("_ParallelMapDataset", "_ParallelBatchDataset"):
        return bool(read(dataset, "_deterministic", "see whether a Dataset is in any order") == "false")
    return getattr(dataset, "_deterministic", None) == "false"


def noting_order(original: Callable[..., None]) -> Callable[..., None]:
    """The method `__init__` of INTERLEAVE, which keeps what it was told, as the Datasets of `map` do."""

    def keeping(self: Any, *args: Any, deterministic: bool | None = None, **kwargs: Any) -> None:
        original(self, *args, deterministic=deterministic, **kwargs)
        self._deterministic = "default" if deterministic is None else str(bool(deterministic)).lower()

    return keeping


def cache_of_task(job: str, task: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What makes the replacement of CACHE_FILE: a cache in a file has the names of `job` and `task` after its own.

    Two tasks that fill one file end with TensorFlow's "cache lockfile already exists". So does a task that was killed
    while it filled its file, for ever. The first call of a process with a name therefore removes the lock of that name.
    """
    seen: set[str] = set()

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def cache(self: Any, filename: Any = "", *args: Any, **kwargs: Any) -> Any:
            if isinstance(filename, str | os.PathLike) and os.fspath(filename):
                filename = f"{os.fspath(filename)}.{job}.{task}"
                if filename not in seen:
                    seen.add(filename)
                    path = Path(filename)
                    for lock in path.parent.glob(f"{glob.escape(path.name)}*.lockfile"):
                        lock.unlink(missing_ok=True)
            return original(self, filename, *args, **kwargs)

        return cache

    return wrap


def by_workers(data: Any, workers: int, processes: bool, ahead: int) -> Generator[Any, None, None]:
    """The items of a PyDataset in their order, read by Keras's own workers. It stops them at its end.

    - processes: whether the workers are processes, and no threads.
    - ahead: the most items that are ready.
    """
    enqueuer = import_module(f"{_ADAPTERS}.py_dataset_adapter").OrderedEnqueuer(
        data, workers, processes, ahead, shuffle=False
    )
    if inspect.signature(enqueuer.start).parameters:
        enqueuer.start(0)  # since Keras 3.16, which asks for the number of the epoch
    else:
        enqueuer.start()
    try:
        yield from enqueuer.get()
    finally:
        enqueuer.stop()
