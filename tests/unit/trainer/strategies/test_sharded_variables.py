# SPDX-License-Identifier: Apache-2.0
"""Which gradient each shard of a variable gets."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.strategies import sharded_variables


@pytest.fixture
def table() -> Any:
    """What is read of a Keras variable of four rows in two shards."""
    value = sharded_variables.ShardedVariable([tf.Variable(tf.zeros((3, 2))), tf.Variable(tf.zeros((1, 2)))])
    return SimpleNamespace(value=value)


def rows(table: Any, *wanted: list[int]) -> Any:
    """The gradient of a look-up of these rows of each shard, joined as `gradients_of` does."""
    shards = zip(table.value.variables, wanted, strict=True)
    slices = [
        None if not found else tf.IndexedSlices(tf.ones((len(found), 2)) * (place + 1), tf.constant(found), shard.shape)
        for place, (shard, found) in enumerate(shards)
    ]
    return slices, sharded_variables._joined(slices, table)


def parts(gradient: Any, table: Any) -> list[tuple[list[int], list[float]]]:
    """Row numbers and first values of each shard's part."""
    found = [part for _, part in sharded_variables._split(gradient, table)]
    return [(part.indices.numpy().tolist(), part.values.numpy()[:, 0].tolist()) for part in found]


def test_a_shard_gets_the_gradient_that_tensorflow_has_computed_for_it(table: Any) -> None:
    slices, joined = rows(table, [2, 0], [0])
    assert [part for _, part in sharded_variables._split(joined, table)] == slices
    assert joined.indices.numpy().tolist() == [2, 0, 3]


def test_a_shard_gets_its_rows_of_a_joined_gradient_that_was_changed(table: Any) -> None:
    _, joined = rows(table, [2, 0], [0])
    clipped = tf.IndexedSlices(joined.values * 10, joined.indices, joined.dense_shape)
    assert parts(clipped, table) == [([2, 0], [10, 10]), ([0], [20])]


def test_a_shard_of_which_no_row_was_read_gets_no_rows(table: Any) -> None:
    _, joined = rows(table, [1], [])
    assert parts(joined, table) == [([1], [1]), ([], [])]


def test_shards_get_their_rows_of_a_gradient_of_all_rows(table: Any) -> None:
    dense = tf.constant(np.arange(8.0).reshape(4, 2))
    assert [part.numpy()[:, 0].tolist() for _, part in sharded_variables._split(dense, table)] == [[0, 2, 4], [6]]
