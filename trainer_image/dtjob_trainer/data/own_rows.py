# SPDX-License-Identifier: Apache-2.0
"""A task's rows of each batch of a `tf.data.Dataset`, taken before map(): its functions then run for these rows alone.

This is done for a Dataset that ends with map() and batch(). All tasks still read everything that is before map(), in
the same order, so each batch has the rows that it has on one device.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.data import elements, marks, randomness
from dtjob_trainer.data.batches import Place
from dtjob_trainer.data.sharding import share
from dtjob_trainer.frameworks import datasets

ADVICE = "give a data function of DataContext, which makes its share alone (context.shuffled or context.files)"
_plain: Callable[..., Any] = tf.autograph.experimental.do_not_convert
_NO_END = "it does not end with map() and batch(): let shuffle(), filter() and the like come before map()"


class OwnRows:
    """Such a Dataset: its elements are a task's rows of each batch, and what is to be known of the batch."""

    def __init__(
        self, dataset: Any, base: Any, before: Sequence[Any], batch: Any, after: Sequence[Any], place: Place
    ) -> None:
        """The parts of `dataset`.

        - base: what is before the last map() functions: every task reads all of it.
        - before: map() and cache() between that and `batch`, in their order.
        - after: repeat(), take() and cache() after `batch`, in their order.
        """
        self._base, self._place, self._size = base, place, int(datasets.batch_size(batch))
        self._functions = [datasets.map_function(part) for part in before if _is_map(part)]
        rows = base.batch(self._size, drop_remainder=bool(datasets.drops_remainder(batch)))
        rows = rows.map(_plain(self._taken)).unbatch()
        for part in before:
            rows = _again(part, rows)
        low, high = share(self._size, place.shard, place.shards)
        batches = rows.batch(max(high - low, 1))  # of the last batch, no share is larger
        for part in after:
            batches = _again(part, batches)
        self.dataset = batches.with_options(dataset.options())

    def inputs(self, element: Any) -> tuple[Any, ...]:
        """The parts of the program's own element."""
        return elements.as_inputs(element[0])

    def counts(self, element: Any) -> tuple[Any, Any]:
        """How many of its rows count, and the examples of the global batch (int32, scalars)."""
        return element[1]["count"][0], element[1]["total"][0]

    def marks_of(self, element: Any) -> tuple[float, ...]:
        """The marks of the global batch, some rows of which are mapped for this by all tasks."""
        kinds = [spec.dtype for spec in tf.nest.flatten(self._base.element_spec)]
        seen = [tf.io.parse_tensor(text, kind) for text, kind in zip(element[1]["seen"][0], kinds, strict=True)]
        rows = [self._mapped([part[row] for part in seen]) for row in range(int(seen[0].shape[0]))]
        batch = tf.nest.map_structure(lambda *parts: tf.stack(parts), *rows)
        return tuple(elements.marks_of(batch, rows=int(element[1]["total"][0])))

    def _mapped(self, row: list[Any]) -> Any:
        for function in self._functions:
            row = function.function(*row)
        return datasets.from_tensors(self._functions[-1].output_structure, row)

    def _taken(self, *batch: Any) -> Any:
        """In the graph: this task's rows of a batch that is not mapped yet, one at least, each with what is to be known
        of the batch. The first row also has some rows of the whole batch."""
        parts = tf.nest.flatten(batch)
        total = tf.shape(parts[0])[0]
        begin, end, count = elements.share_within(total, self._place)
        chosen = tf.constant(_seen_of(self._size))[total - 1, : tf.minimum(total, marks.ROWS_SEEN)]
        seen = tf.stack([tf.io.serialize_tensor(tf.gather(part, chosen)) for part in parts])[None]
        is_first = tf.range(end - begin)[:, None] == 0
        about = {
            "count": tf.fill([end - begin], count),
            "total": tf.fill([end - begin], total),
            "seen": tf.where(is_first, seen, tf.fill(tf.shape(seen), "")),
        }
        mine = tf.nest.map_structure(lambda part: part[begin:end], batch)
        return (mine if isinstance(self._base.element_spec, tuple) else mine[0]), about


def of(dataset: Any, place: Place) -> tuple[OwnRows | None, str]:
    """The rows of `dataset` that a task maps. None if it has to map all rows, and why, or if nothing is mapped."""
    if not _maps(dataset):
        return None, ""
    part = dataset
    after: list[Any] = []
    before: list[Any] = []
    while datasets.kind_of(part) not in datasets.BATCHES:
        if not _passes(part, after, (datasets.REPEAT, datasets.TAKE)):
            return None, f"{_NO_END}; or {ADVICE}"
        (part,) = datasets.inputs_of(part)
    batch, (part,) = part, datasets.inputs_of(part)
    while _is_map(part) or _passes(part, before, ()):
        if _is_map(part):
            if why := randomness.keeps_state(part):
                return None, f"{why}; or {ADVICE}"
            before.append(part)
        (part,) = datasets.inputs_of(part)
    (rows,) = datasets.inputs_of(batch)
    dense = [isinstance(spec, tf.TensorSpec) for spec in tf.nest.flatten(rows.element_spec)]
    if _maps(part) or not any(map(_is_map, before)) or not all(dense) or not _can_be_batched(part.element_spec):
        return None, f"{_NO_END}; or {ADVICE}"
    return OwnRows(dataset, part, before[::-1], batch, after[::-1], place), ""


def _passes(part: Any, kept: list[Any], names: tuple[str, ...]) -> bool:
    """Whether a share may be taken before `part`, which is then added to `kept` unless it changes no element."""
    name = datasets.kind_of(part)
    in_memory = name == datasets.CACHE and datasets.is_in_memory(part)  # tasks would share a file
    if in_memory or name in names:
        kept.append(part)
    # options of the whole are set at the end, and the source reads ahead
    return in_memory or name in names or name in datasets.PASSED_OVER


def _is_map(part: Any) -> bool:
    return datasets.kind_of(part) in datasets.MAPS


def _maps(dataset: Any) -> bool:
    """Whether examples are made by map(), also by one within a function of interleave() and the like."""
    return any(
        _is_map(part) or any("MapDataset" in name for name in randomness.operations_of(part))
        for part in randomness.pipeline(dataset)
    )


def _can_be_batched(spec: Any) -> bool:
    """Whether all elements of `spec` are dense tensors of one shape, which can be written down."""
    return all(
        isinstance(part, tf.TensorSpec)
        and part.shape.is_fully_defined()
        and part.dtype not in (tf.variant, tf.resource)
        for part in tf.nest.flatten(spec)
    )


def _again(part: Any, dataset: Any) -> Any:
    """What `part` does, done to `dataset`, whose elements are the program's, and what is to be known of the batch."""
    match datasets.kind_of(part):
        case datasets.REPEAT:
            return dataset.repeat(datasets.count_of(part))
        case datasets.TAKE:
            return dataset.take(datasets.count_of(part))
        case datasets.CACHE:
            return dataset.cache()
    (read,), function = datasets.inputs_of(part), datasets.map_function(part)

    def mapped(element: Any, about: Any) -> Any:
        made = function.function(*datasets.to_tensors(read.element_spec, element))
        return datasets.from_tensors(function.output_structure, made), about

    return dataset.map(_plain(mapped), num_parallel_calls=datasets.parallel_calls(part))


def _seen_of(size: int) -> Any:
    """By the number of rows of a batch, less one, which of them are compared (int64, filled up with zeros)."""
    table = np.zeros((size, marks.ROWS_SEEN), np.int64)
    for rows in range(1, size + 1):
        chosen = elements.rows_seen(rows)
        table[rows - 1, : len(chosen)] = chosen
    return table
