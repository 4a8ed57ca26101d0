# SPDX-License-Identifier: Apache-2.0
"""Class weights as sample weights, as Keras has them: a class that is not named counts once."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import DataError


def weigh(source: Source, class_weight: Mapping[int, float]) -> None:
    """Have the examples of `source` weighted by their class, the number or the largest entry of a one-hot row.

    Raises DataError if `source` has weights already, or no targets that are one tensor.
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
