# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.returned: what replicas' steps return, as one value."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.models.returned import ROWS, Returned, noting_results
from dtjob_trainer.placement.cuts import Cut
from dtjob_trainer.strategies.collective import Group


def traced(returned: Returned, step: Any, rows: Any) -> dict[str, Any]:
    def replica(values: Any) -> Any:
        return returned.of_replica(lambda: step(values), Cut(1, tf.size(values), tf.size(values), False))

    function = tf.function(replica, input_signature=[tf.TensorSpec([None])])
    return {name: value.numpy() for name, value in function(rows).items()}


def returns(values: Any) -> Any:
    return {
        "mean": tf.reduce_mean(values),
        "inner": {"sum": tf.reduce_sum(values), "largest": tf.cast(tf.reduce_max(values), tf.float64)},
        "least": tf.reduce_min(values),
        "constant": 0.1,
        "penalty": tf.reduce_sum(tf.constant([1.0, 2.0])),
        "rows": tf.shape(values)[0],
        "vector": tf.stack([tf.reduce_mean(values), 1.0]),
        "of each": values,
    }


def test_replicas_of_unequal_shares_and_one_without_any() -> None:
    returned = Returned()
    parts = [np.array([1.0, 2.0, 6.0]), np.array([-1.0]), np.array([9.0])]
    each = [traced(returned, returns, part) for part in parts]
    left = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
    left[ROWS] = np.array([[3, 4], [1, 4], [0, 4]])  # the last one only stands in
    assert returned.logs(left) == {
        "mean": 2.0,
        "sum": 8.0,
        "largest": 6.0,
        "least": -1.0,
        "constant": float(np.float32(0.1)),
        "penalty": 3.0,
        "rows": 4.0,
        "vector": [2.0, 1.0],
        "of each": 2.0,
    }
    assert returned.share_of("mean", {name: value[:1] for name, value in left.items()}) == pytest.approx(9 / 4)
    assert returned.share_of("sum", {name: value[:2] for name, value in left.items()}) == pytest.approx(8.0)
    assert returned.share_of("largest", left) is None
    assert returned.share_of("vector", left) is None
    assert returned.share_of("nothing", left) is None


def test_values_that_replicas_return_are_gathered() -> None:
    group = Group(tf.distribute.get_strategy(), None)
    left = {ROWS: tf.constant([[1, 2], [1, 2]]), "a": tf.constant([1.0, np.inf]), "b": tf.ones([2, 3])}
    found = Returned().gathered(left, group)
    assert {name: value.tolist() for name, value in found.items()} == {
        ROWS: [[1, 2], [1, 2]],
        "a": [1.0, np.inf],
        "b": [[1.0] * 3] * 2,
    }


def test_results_of_metrics_are_read_of_the_metrics() -> None:
    metric, returned = keras.metrics.Mean(), Returned()

    def step(values: Any) -> Any:
        metric.update_state(values)
        return {"so far": metric.result(), "twice": 2 * metric.result()}

    with noting_results([metric]):
        left = traced(returned, step, np.array([1.0, 3.0]))
    metric.update_state([5.0, 7.0])
    assert returned.logs({name: np.asarray(value, np.float64) for name, value in left.items()}) == {
        "so far": 4.0,
        "twice": 4.0,
    }
    assert "result" not in vars(metric)
