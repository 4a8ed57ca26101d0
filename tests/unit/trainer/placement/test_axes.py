# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.placement.axes: what operations make of rows."""

import pytest
import tensorflow as tf

from dtjob_trainer.placement import axes, kinds
from dtjob_trainer.placement.kinds import ROWS


@pytest.mark.parametrize(("batch_dims", "found"), [(1, ROWS), (-1, None)])
def test_a_gather_gives_rows_only_if_each_row_has_its_own_places(batch_dims: int, found: object) -> None:
    """With batch_dims=-1 and a vector of places, each row is read at the places of all rows."""
    with tf.Graph().as_default():
        places = tf.compat.v1.placeholder(tf.int32, [None, 1] if batch_dims > 0 else [None])
        table = tf.compat.v1.placeholder(tf.float32, [None, 3])
        made = tf.gather(kinds.put(table, ROWS), kinds.put(places, ROWS), axis=1, batch_dims=batch_dims).op
        assert axes.decide(axes.Call(made.type, list(made.inputs), made.node_def.attr)) == found
