# SPDX-License-Identifier: Apache-2.0
"""Class weights as sample weights, as Keras has them: a class that is not named counts once."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data.batches import Batch, Cutting, Source
from dtjob_trainer.data.sharding import Eras
from dtjob_trainer.errors import DataError


class ClassWeighted(Source):
    """A source whose examples are weighted by their class: `source` with weights beside (x, y)."""

    def __init__(self, source: Source, class_weight: Mapping[int, float]) -> None:
        """Raises DataError where `source` has weights already, or no targets that are one tensor."""
        _, y, weights = source.spec()
        if weights is not None:
            raise DataError("class_weight: there are sample weights already; multiply the two in your program")
        if not isinstance(y, tf.TensorSpec):
            raise DataError("class_weight: the targets must be one array; weigh several outputs with sample_weight")
        self._source = source
        self._classes = [int(label) for label in class_weight]
        self._weights = [float(weight) for weight in class_weight.values()]
        self.steps, self.may_be_empty, self.exact = source.steps, source.may_be_empty, source.exact
        self.sizes, self.once, self.own_ends = source.sizes, source.once, source.own_ends
        self.most, self.element_spec, self.numbered = source.most, source.element_spec, source.numbered
        self.own_shares, self.batch, self.cut_by_batch = source.own_shares, source.batch, source.cut_by_batch
        self.marks, self.inexact, self.rows = source.marks, source.inexact, source.rows
        self.argument, self.compared = source.argument, source.compared

    def shared(self, eras: Eras) -> None:
        """Tell the source itself."""
        self._source.shared(eras)

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """The batches of pass `number` from `first_step` on."""
        return self._source.epoch(number, first_step)

    def elements(self, number: int, first_step: int) -> Any:
        """The same as a Dataset."""
        return self._source.elements(number, first_step)

    def marks_of(self, element: Any) -> tuple[float, ...]:
        """What tells an element from another one."""
        return self._source.marks_of(element)

    def cut(self, element: Any, step: Any) -> Cutting:
        """In the graph: this task's part of an element."""
        return self._source.cut(element, step)

    def complain(self, number: int, first_step: int, step: int) -> None:
        """Let the source itself say what does not fit."""
        self._source.complain(number, first_step, step)

    def ended(self, number: int, step: int) -> None:
        """Tell the source itself."""
        self._source.ended(number, step)

    def stand_in(self, number: int) -> tuple[Any, ...]:
        """Inputs of one row of no weight."""
        return self._source.stand_in(number)

    def bytes_of(self, batch: Batch) -> int:
        """About how much memory `batch` takes."""
        return self._source.bytes_of(batch)

    def epoch_begins(self) -> None:
        """Tell the source itself."""
        self._source.epoch_begins()

    def epoch_ends(self) -> None:
        """Tell the source itself."""
        self._source.epoch_ends()

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """In the graph: a batch's inputs → (x, y, weights)."""
        x, y, _ = self._source.decode(*inputs)
        return x, y, self._of(y)

    def input_spec(self) -> tuple[Any, ...]:
        """Specs of a batch's inputs."""
        return self._source.input_spec()

    def spec(self) -> tuple[Any, Any, Any]:
        """Specs of the examples."""
        x, y, _ = self._source.spec()
        return x, y, tf.TensorSpec([None], keras.config.floatx())

    def _of(self, y: Any) -> Any:
        """The weight of each example, by its class: the largest entry of a one-hot row, or the number itself."""
        if y.shape.rank > 1:
            y = tf.argmax(y, -1) if y.shape[-1] != 1 else tf.squeeze(y, -1)
        labels = tf.cast(tf.round(y) if y.dtype.is_floating else y, tf.int64)
        found = tf.equal(tf.expand_dims(labels, -1), tf.constant(self._classes, tf.int64))
        weights = tf.where(found, tf.constant(self._weights, keras.config.floatx()), 0)
        return tf.where(tf.reduce_any(found, -1), tf.reduce_sum(weights, -1), 1)
