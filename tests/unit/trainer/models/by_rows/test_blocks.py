# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.by_rows.blocks: tensors that hold the batch's rows several times."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.models.by_rows.blocks import UNKNOWN, apart, blocks_of, key_of, together

QUEUE = tf.ones([7, 2])
"""Rows that are kept from earlier batches."""


@pytest.mark.parametrize(
    ("made", "blocks"),
    [
        (lambda x: x * 2.0, 1),
        (lambda x: tf.concat([x, x], 1), 1),
        (lambda x: tf.reshape(x, [-1, 1]), 1),
        (lambda x: tf.repeat(x, 3, axis=0), 1),
        (lambda x: tf.concat([x, x + 1.0], 0), 2),
        (lambda x: tf.concat([x[:, 0], x[:, 1], x[:, 0]], -1), 3),
        (lambda x: tf.nn.relu(tf.concat([tf.concat([x, x], 0) * 2.0, x], 0)), 3),
        (lambda x: tf.tile(x, [3, 1]), 3),
        (lambda x: tf.reshape(tf.stack([x, x]), [-1, 2]), 2),
        (lambda x: tf.concat([x, QUEUE], 0) @ tf.ones([2, 3]), UNKNOWN),
    ],
)
def test_blocks_are_seen_at_the_operations_that_make_them(made: Callable[[Any], Any], blocks: int) -> None:
    found = []

    def step(rows: Any) -> Any:
        found.append(blocks_of(made(rows), {key_of(rows)}, {}))
        return rows

    tf.function(step).get_concrete_function(tf.TensorSpec([None, 2]))
    assert found == [blocks]


def by_time(x: Any) -> Any:
    """`x` of 4 steps, with the steps before the rows."""
    return tf.transpose(x, [1, 0, 2])


def two(x: Any) -> Any:
    return tf.concat([x, x + 1.0], 0)


@pytest.mark.parametrize(
    ("made", "blocks"),
    [
        (lambda x: tf.reshape(by_time(x), [-1, 6]), 4),
        (lambda x: tf.transpose(tf.reshape(by_time(x), [4, -1, 2, 3]), [1, 0, 2, 3]), 1),  # heads of attention
        (lambda x: by_time(tf.reshape(tf.reshape(by_time(x), [-1, 6]) * 2.0, [4, -1, 6])), 1),
        (lambda x: by_time(x)[-1], 1),
        (lambda x: tf.reshape(tf.reshape(x, [-1, 6]) * 2.0, [-1, 4, 6]), 1),
        (lambda x: tf.split(two(x), 2)[1], 1),
        (lambda x: tf.split(tf.concat([two(x), two(x)], 0), 2)[0], 2),
        (lambda x: tf.split(two(x), 2, axis=1)[0], 2),
        (lambda x: tf.split(tf.concat([two(x), x], 0), 2)[0], UNKNOWN),
        (lambda x: tf.reduce_mean(tf.reshape(two(x), [2, -1, 4, 6]), 0), 1),
        (lambda x: tf.reshape(tf.stack([two(x), two(x)]), [-1, 4, 6]), 4),
        (lambda x: tf.reduce_sum(tf.concat([tf.stack([x, x]), tf.stack([x, x])], 0), 0), 1),
        (lambda x: two(x)[: tf.shape(x)[0]], UNKNOWN),
        (lambda x: two(x)[::2], UNKNOWN),
        (lambda x: tf.split(two(x), [tf.shape(x)[0]] * 2)[0], UNKNOWN),
        (lambda x: tf.gather(two(x), tf.range(tf.shape(x)[0])), UNKNOWN),
        (lambda x: tf.gather(two(x), [0, 2], axis=1), 2),
        (lambda x: two(x)[:, 0], 2),
        (lambda x: two(x)[..., 1:], 2),
        (lambda x: x[: tf.shape(x)[0] // 2], 1),
    ],
)
def test_blocks_are_seen_where_they_are_taken_apart_again(made: Callable[[Any], Any], blocks: int) -> None:
    found = []

    def step(rows: Any) -> Any:
        found.append(blocks_of(made(rows), {key_of(rows)}, {}))
        return rows

    tf.function(step).get_concrete_function(tf.TensorSpec([None, 4, 6]))
    assert found == [blocks]


def test_the_way_back_ends_at_known_tensors() -> None:
    found = []

    def step(rows: Any) -> Any:
        known = tf.concat([rows, rows], 0)
        found.append(blocks_of(tf.concat([known, known], 0), {key_of(known)}, {key_of(known): 2}))
        return rows

    tf.function(step).get_concrete_function(tf.TensorSpec([None, 2]))
    assert found == [4]


def test_blocks_are_taken_apart_and_put_together() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def both(value: Any) -> Any:
        parts = apart(value, 3)
        assert parts.shape.as_list() == [None, 3, 2]
        return parts, together(parts, 3)

    value = tf.reshape(tf.range(12.0), [6, 2])
    parts, whole = both(value)
    assert parts[1].numpy().tolist() == [[2, 3], [6, 7], [10, 11]]
    assert whole.numpy().tolist() == value.numpy().tolist()
