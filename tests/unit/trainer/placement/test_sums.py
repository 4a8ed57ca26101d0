# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.placement.sums: gradients as optimizers apply them."""

from typing import Any

import tensorflow as tf

from dtjob_trainer.placement import sums


def test_gradients_of_a_step_that_runs_eagerly_are_summed() -> None:
    """As of a program's own loop in a callback, with an optimizer of the model that is trained."""

    def step() -> Any:
        slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([3]), tf.constant([5, 2]))
        return sums.of_one_device([tf.constant([1.0, 2.0]), None, slices])

    dense, none, slices = tf.distribute.MirroredStrategy(["CPU:0"]).run(step)
    assert dense.numpy().tolist() == [1.0, 2.0]
    assert none is None
    assert slices.indices.numpy().tolist() == [3]
