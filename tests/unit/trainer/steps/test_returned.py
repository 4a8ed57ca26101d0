# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.steps.returned: what replicas' steps return, as one value."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.placement.shard import Shard
from dtjob_trainer.steps.returned import Returned, noting_results
from dtjob_trainer.strategies.collective import Group


def parts_of(returned: Returned, step: Any, rows: Any, shard: Shard | None = None) -> dict[str, Any]:
    """What a replica with these `rows` leaves of what `step` returns; the replica is the only one without a `shard`."""

    def replica(values: Any) -> Any:
        size = tf.size(values)
        return returned.of_replica(lambda: step(values), shard or Shard(1, size, size, may_be_empty=False))

    function = tf.function(replica, input_signature=[tf.TensorSpec([None])])
    return {name: value.numpy() for name, value in function(rows).items()}


def returns(values: Any) -> Any:
    return {
        "loss": tf.reduce_mean(values),
        "inner": {"double": tf.cast(tf.reduce_mean(values), tf.float64)},
        "constant": 0.1,
        "whole": tf.constant(7),
        "vector": tf.stack([tf.reduce_mean(values), 1.0]),
        "of each": values,
    }


def test_values_of_a_step_that_scales_its_gradients_are_means_weighted_by_rows() -> None:
    """The shares are unequal, and the last replica has a padding row."""
    returned = Returned()
    rows = [np.array([1.0, 2.0, 6.0]), np.array([-1.0]), np.array([np.inf])]
    counts = [3, 1, 0]
    each = [
        parts_of(returned, returns, some, Shard(3, tf.constant(count), tf.constant(4), may_be_empty=True))
        for some, count in zip(rows, counts, strict=True)
    ]
    sums = {name: sum(one[name] for one in each) for name in each[0]}
    assert returned.logs(sums) == {
        "loss": 2.0,
        "double": 2.0,
        "constant": float(np.float32(0.1)),
        "whole": 7.0,
        "vector": [2.0, 1.0],
        "of each": 2.0,
    }
    assert returned.loss(each[0]) == 9 / 4
    assert returned.loss({"loss": each[0]["vector"]}) is None
    assert returned.loss({}) is None


def test_a_single_replica_has_its_own_values() -> None:
    returned = Returned()
    found = parts_of(returned, returns, np.array([0.1, 0.2, 0.4]))
    assert returned.logs(found)["loss"] == float(np.mean(np.array([0.1, 0.2, 0.4], np.float32), dtype=np.float32))


def test_parts_of_all_tasks_are_added_up() -> None:
    group = Group(tf.distribute.get_strategy(), None)
    found = Returned().gathered({"a": tf.constant(np.inf), "b": tf.ones([3])}, group)
    assert {name: value.tolist() for name, value in found.items()} == {"a": np.inf, "b": [1.0] * 3}


def test_results_of_metrics_are_read_of_the_metrics() -> None:
    metric, returned = keras.metrics.Mean(), Returned()

    def step(values: Any) -> Any:
        metric.update_state(values)
        return {"so far": metric.result(), "twice": 2 * metric.result()}

    with noting_results([metric]):
        parts = parts_of(returned, step, np.array([1.0, 3.0]))
    metric.update_state([5.0, 7.0])
    assert returned.logs(parts) == {"so far": 4.0, "twice": 4.0}
    assert "result" not in vars(metric)
