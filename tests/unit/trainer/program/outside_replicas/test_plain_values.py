# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.outside_replicas.plain_values: a number in place of a result of strategy.run."""

from types import SimpleNamespace

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
plain_values = pytest.importorskip("dtjob_trainer.program.outside_replicas.plain_values")


@pytest.mark.parametrize("value", [1.5, 2, np.float32(0.25), np.arange(3), tf.constant([1.0, 2.0])])
def test_a_sum_counts_a_plain_value_for_each_replica(value: object) -> None:
    def reduce(*_: object) -> None:
        raise ValueError("A non-DistributedValues value cannot be reduced")

    strategy = SimpleNamespace(_num_replicas_in_sync=3)
    found = plain_values.counting(reduce)(strategy, tf.distribute.ReduceOp.SUM, value)
    np.testing.assert_array_equal(found, np.asarray(value) * 3)
    assert found.dtype == tf.convert_to_tensor(value).dtype


@pytest.mark.parametrize(
    ("reduce_op", "value"), [("MEAN", 1.0), ("SUM", tf.distribute.DistributedValues()), ("SUM", [1.0, 2.0])]
)
def test_the_strategy_gets_everything_else(reduce_op: str, value: object) -> None:
    several = SimpleNamespace(_num_replicas_in_sync=2)
    found = plain_values.counting(lambda *given: given)(several, tf.distribute.ReduceOp(reduce_op), value)
    assert found == (several, tf.distribute.ReduceOp(reduce_op), value)


def test_the_strategy_gets_a_value_of_one_replica_as_it_is() -> None:
    one = SimpleNamespace(_num_replicas_in_sync=1)
    assert plain_values.counting(lambda *given: given)(one, tf.distribute.ReduceOp.SUM, "text")[2] == "text"
