# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.placement.axes: what operations make of rows."""

import pytest
import tensorflow as tf

from dtjob_trainer.placement import axes, kinds
from dtjob_trainer.placement.kinds import ROWS


@pytest.mark.parametrize(("batch_dims", "found"), [(1, ROWS), (-1, None)])
def test_rows_are_gathered_within_rows_if_their_number_is_that_of_a_batch(batch_dims: int, found: object) -> None:
    """-1 of a vector of places is none: then the places of all rows choose columns of each row."""
    with tf.Graph().as_default():
        places = tf.compat.v1.placeholder(tf.int32, [None, 1] if batch_dims > 0 else [None])
        table = tf.compat.v1.placeholder(tf.float32, [None, 3])
        made = tf.gather(kinds.put(table, ROWS), kinds.put(places, ROWS), axis=1, batch_dims=batch_dims).op
        assert axes.decide(axes.Call(made.type, list(made.inputs), made.node_def.attr)) == found
