# SPDX-License-Identifier: Apache-2.0
"""A batched `tf.data.Dataset`, as the batches of one task."""

from typing import Any

import tensorflow as tf

from dtjob_trainer.data import elements, own_rows, randomness
from dtjob_trainer.data.batches import Batch, Place, Source, Wanted
from dtjob_trainer.errors import DataError
from dtjob_trainer.frameworks import datasets


class DatasetSource(Source):
    """A batched `tf.data.Dataset`, whose every element is a global batch; each task takes its rows of it."""

    reads_python = False
    """Whether its Python code is ours, which reads batches of the program in an order that we give."""
    made_once = True
    """Whether all passes read the Dataset that it was given."""

    def __init__(self, dataset: Any, place: Place, wanted: Wanted) -> None:
        cardinality, argument = int(dataset.cardinality()), wanted.argument
        elements.check(dataset.element_spec, argument, remote=place.remote)
        if cardinality == 0:
            raise DataError(
                f"{argument}: the Dataset has no batches; give it examples, as many as a batch has where it is batched "
                "with drop_remainder=True"
            )
        check_end(dataset, wanted)
        if place.shards > 1:
            if randomness.in_any_order(dataset):
                raise DataError(
                    f"{argument}: a part of the Dataset has deterministic=False, such as map() or interleave(), so "
                    "that each task would cut its share from other batches; leave that out"
                )
            in_order = tf.data.Options()
            in_order.deterministic = True
            dataset = dataset.with_options(in_order)
        self.steps = min(cardinality, wanted.at_most or cardinality) if cardinality > 0 else None
        self._dataset, self._place = dataset, place
        self._from_begin: Any = None
        """All of it, read ahead: one Dataset for all passes, as TensorFlow prepares each once (6 ms)."""
        self.most, self.element_spec = wanted.at_most, dataset.element_spec
        if place.replicas > 1:
            self.whole = elements.whole_parts(dataset.element_spec, argument)
        rows = rows_of_each_batch(dataset, self.whole)
        self.may_be_empty = place.replicas > 1 if rows is None else rows < place.replicas
        self.batch, self.rows = batch_size_of(dataset), rows
        self.inexact = randomness.unrepeatable(dataset, from_begin=True, python=not self.reads_python)
        self.argument = argument
        self._own: own_rows.OwnRows | None = None
        """Where functions of map() run for this task's rows alone."""
        if place.shards > 1:
            own, why = (None, "") if self.reads_python else own_rows.of(dataset, place)
            if self.whole:
                own = None
            if own is not None and self.made_once:
                self._own, self.element_spec = own, own.dataset.element_spec
            elif own is not None:
                why = f"the data function takes no DataContext; {own_rows.ADVICE}"
            all_rows = (
                f"each of the {place.shards} tasks makes all examples of each batch, and trains on its share of them"
            )
            self.remark = why and f"{argument}: {all_rows}, as {why}"
            python = self.reads_python or randomness.calls_python(dataset)
            self.compared = "labels" if randomness.draws(dataset) else "targets" if python else "all"

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of the parts of an element."""
        return elements.as_inputs(elements.any_batches(self._dataset.element_spec, self.whole))

    def elements(self, number: int, first_step: int) -> Any:
        """The Dataset of pass `number`, from `first_step` on: what comes before is skipped (and so decoded)."""
        whole = self._pass(number)
        dataset = whole if self._own is None else self._own.dataset
        # several of unknown length are read at once, for the tasks to agree on
        ahead = tf.data.AUTOTUNE if self.steps is None and self._place.shards > 1 else 2
        if first_step:
            return dataset.skip(first_step).prefetch(ahead)
        if whole is not self._dataset:
            return dataset.prefetch(ahead)
        if self._from_begin is None:
            self._from_begin = dataset.prefetch(ahead)
        return self._from_begin

    def marks_of(self, element: Any) -> tuple[float, ...]:
        """What tells an element from another one."""
        return tuple(elements.marks_of(element)) if self._own is None else self._own.marks_of(element)

    def cut(self, element: Any, step: Any) -> Batch:
        """In the graph: this task's rows of `element`."""
        if self._own is not None:
            return Batch(self._own.inputs(element), *self._own.counts(element))
        inputs, place = elements.as_inputs(element), self._place
        total = elements.rows_within(elements.first_rows(inputs, self.whole))
        if place.shards == 1:
            return Batch(inputs, total, total)
        begin, end, mine = elements.share_within(total, place)
        return Batch(elements.share_of(inputs, begin, end, self.whole), mine, total)

    def _pass(self, number: int) -> Any:
        """The whole Dataset of pass `number`: always the same one here."""
        return self._dataset


def check_end(dataset: Any, wanted: Wanted) -> None:
    """Raise DataError where `dataset` has no end and must have one."""
    ended_otherwise = wanted.steps is not None or wanted.at_most is not None or wanted.endless
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY and not ended_otherwise:
        raise DataError(
            f"{wanted.argument}: the Dataset has no end; give {wanted.steps_argument}, or leave out repeat()"
        )


def rows_of_each_batch(dataset: Any, whole: tuple[bool, ...] = ()) -> int | None:
    """Examples in every batch of a batched Dataset, where all have the same number and it says so."""
    shape = elements.first_rows(dataset.element_spec, whole).shape
    return int(shape[0]) if shape.rank and shape[0] is not None else None


def batch_size_of(dataset: Any) -> int | None:
    """What a Dataset was told by batch(), as its last step but for what keeps batches as they are; None: unknown. The
    last batch may be smaller."""
    while True:
        if (size := datasets.batch_size(dataset)) is not None:
            return int(size)
        if datasets.kind_of(dataset) not in datasets.KEEP_BATCHES:
            return None
        dataset = datasets.inputs_of(dataset)[0]
