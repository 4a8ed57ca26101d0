# SPDX-License-Identifier: Apache-2.0
"""Which steps exchange what may have another shape each time."""

from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.engines.synchronous import have_open_shapes


def summed(value: Any) -> Any:
    """The value as several tasks sum it."""
    keys = {"group_size": tf.constant(2), "group_key": tf.constant(1), "instance_key": tf.constant(1)}
    return tf.raw_ops.CollectiveReduceV2(input=value, **keys, ordering_token=[], merge_op="Add", final_op="Id")


@pytest.mark.parametrize(("rows", "open_"), [(None, True), (4, False)])
def test_open_shapes_are_found_in_a_loop_whose_steps_exchange_rows(rows: int | None, open_: bool) -> None:
    def step(number: Any, values: Any) -> Any:
        return number + 1, tf.ensure_shape(summed(values), [rows])

    def steps(values: Any) -> Any:
        return tf.while_loop(lambda number, _: number < 3, step, (tf.constant(0), values))[1]

    function = tf.function(steps, input_signature=[tf.TensorSpec([rows], tf.float32)])
    assert have_open_shapes(function.get_concrete_function().graph) is open_


def test_a_tensor_that_is_not_exchanged_may_have_an_open_shape() -> None:
    function = tf.function(
        lambda rows: summed(tf.reduce_sum(rows)), input_signature=[tf.TensorSpec([None], tf.float32)]
    )
    assert not have_open_shapes(function.get_concrete_function().graph)
