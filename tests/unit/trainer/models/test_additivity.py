# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.additivity: which metrics' states are seen to add up over parts of a batch."""

from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf

from dtjob_trainer.models import additivity


class Kept(keras.metrics.Metric):
    """What `keep` makes of what there was and of absolute errors."""

    def __init__(self, keep: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.kept, self.keep = self.add_weight(name="kept", initializer="zeros"), keep

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.kept.assign(self.keep(tf.convert_to_tensor(self.kept), tf.abs(y_true - y_pred)))


def seen(metric: Any) -> bool:
    found: list[bool] = []

    def step(y: Any, y_pred: Any) -> Any:
        found.append(additivity.adds(metric, metric.update_state, (y, y_pred), {}))
        return y

    spec = tf.TensorSpec([None, 1])
    tf.function(step).get_concrete_function(spec, spec)
    return found[0]


@pytest.mark.parametrize(
    ("keep", "adds"),
    [
        (lambda kept, errors: kept + tf.reduce_sum(errors), True),
        (lambda kept, errors: kept + tf.cast(tf.shape(errors)[0], tf.float32), True),
        (lambda kept, errors: kept + tf.reduce_mean(errors), False),
        (lambda kept, errors: kept + 1.0, False),
        (lambda kept, errors: tf.maximum(kept, tf.reduce_max(errors)), False),
        (lambda kept, errors: tf.minimum(kept, tf.reduce_min(-errors)), False),
        (lambda kept, errors: errors[-1, 0], False),
        (lambda kept, errors: 0.9 * kept + 0.1 * tf.reduce_sum(errors), False),
        (lambda kept, errors: kept + tf.reduce_sum(errors - tf.reduce_mean(errors) ** 2), False),
        (lambda kept, errors: kept, False),  # nothing is seen
    ],
)
def test_only_metric_states_that_add_up_are_taken_to_add_up(keep: Callable[[Any, Any], Any], adds: bool) -> None:
    metric = Kept(keep)
    assert seen(metric) is adds
    assert float(metric.kept.numpy()) == 0.0  # it was left alone


def test_functions_that_give_one_value_for_each_row() -> None:
    assert seen(keras.metrics.MeanMetricWrapper(lambda y, y_pred: tf.abs(y - y_pred)))
    assert not seen(keras.metrics.MeanMetricWrapper(lambda y, y_pred: tf.reduce_mean(tf.abs(y - y_pred))))
    assert not seen(keras.metrics.MeanMetricWrapper(lambda y, y_pred: y_pred - tf.reduce_mean(y_pred, 0)))


def test_a_metric_that_depends_on_the_number_of_rows_does_not_add_up() -> None:
    assert not seen(Kept(lambda kept, errors: kept / int(tf.shape(errors)[0] > 99)))
