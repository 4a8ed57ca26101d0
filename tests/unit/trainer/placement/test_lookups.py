# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.placement.lookups: what look-ups depend on, as the operations before them show it."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.placement.lookups import Lookup, batch_of_step, kind_of
from dtjob_trainer.placement.shard import setting

IDS, OPEN = tf.TensorSpec([None, 6], tf.int32), tf.TensorSpec([None, None], tf.int32)
WORDS = tf.TensorSpec([None, 2], tf.string)
FIXED = tf.TensorSpec([4, 6], tf.int32)
"""As in a custom loop, where each step has equally many rows."""
RAGGED, SPARSE = tf.RaggedTensorSpec([None, None], tf.int64), tf.SparseTensorSpec([None, 6], tf.int64)
DISTANCES = [0, 1, 1, 0]
VARIABLE = tf.Variable(DISTANCES)
TABLE = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.range(9), tf.range(9)), 0)

SAME: list[tuple[Callable[[Any], Any], Lookup]] = [
    (lambda ids: tf.reshape(ids, [-1]), Lookup.OF_ROWS),
    (lambda ids: tf.where(ids < 0, ids + 9, ids), Lookup.OF_ROWS),
    (lambda ids: tf.boolean_mask(ids, ids > 0), Lookup.OF_ROWS),
    (lambda ids: tf.reduce_max(ids, 0), Lookup.OF_ROWS),
    (lambda ids: tf.reshape(ids, [-1]) + VARIABLE[0], Lookup.OF_ROWS),
    (lambda ids: tf.reshape(TABLE.lookup(ids), [-1]), Lookup.OF_ROWS),
    (lambda ids: tf.range(6), Lookup.FOR_ALL_ROWS),
    (lambda ids: tf.constant(DISTANCES), Lookup.FOR_ALL_ROWS),
    (lambda ids: tf.range(tf.shape(ids)[1]), Lookup.FOR_ALL_ROWS),
    (lambda ids: tf.reshape(tf.range(6), [1, 6]), Lookup.FOR_ALL_ROWS),
    (lambda ids: tf.unique(tf.reshape(ids, [-1]))[0], Lookup.DIFFERENT),
    (lambda ids: tf.unique(tf.reshape(ids, [-1]))[0] + 1, Lookup.DIFFERENT),
    (lambda ids: tf.function(lambda: tf.range(6) + VARIABLE[0])(), Lookup.UNKNOWN),
    (lambda ids: tf.random.uniform([6], 0, 9, tf.int32), Lookup.UNKNOWN),
]
"""Whether the number of rows is open or fixed."""
BY_SPEC: list[tuple[Any, Callable[[Any], Any], Lookup]] = [
    (IDS, lambda ids: tf.range(tf.shape(ids)[0]), Lookup.OF_ROWS),
    (IDS, lambda ids: tf.reshape(tf.zeros_like(ids) + tf.range(6), [-1]), Lookup.OF_ROWS),
    (IDS, lambda ids: tf.convert_to_tensor(VARIABLE), Lookup.FOR_ALL_ROWS),
    # of an open length, which may be another one on each replica
    (OPEN, lambda ids: tf.range(tf.shape(ids)[1]), Lookup.DIFFERENT),
    (RAGGED, lambda ids: ids.flat_values, Lookup.OF_ROWS),
    (RAGGED, lambda ids: tf.range(6), Lookup.FOR_ALL_ROWS),
    (SPARSE, lambda ids: ids.values, Lookup.OF_ROWS),
    (SPARSE, lambda ids: tf.range(6), Lookup.FOR_ALL_ROWS),
    (WORDS, lambda words: tf.reshape(tf.strings.length(words), [-1]), Lookup.OF_ROWS),
    (tf.TensorSpec([1, 6], tf.int32), lambda ids: ids[:, 0], Lookup.OF_ROWS),
    # which may repeat for each of four rows
    (FIXED, lambda ids: tf.reshape(tf.zeros_like(ids) + tf.range(6), [-1]), Lookup.UNKNOWN),
    (FIXED, lambda ids: tf.tile(tf.range(6), [4]), Lookup.UNKNOWN),
    (FIXED, lambda ids: tf.repeat(tf.range(6), 4), Lookup.UNKNOWN),
    (FIXED, lambda ids: tf.zeros([8], tf.int32), Lookup.UNKNOWN),
    (FIXED, lambda ids: tf.convert_to_tensor(VARIABLE), Lookup.UNKNOWN),
]


def found(look_up: Callable[[Any], Any], spec: Any, *, known: bool = True) -> Lookup:
    kinds = []

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(ids: Any) -> Any:
        with setting(batch_of_step, (ids, None) if known else None):
            kinds.append(kind_of(look_up(ids)))
        return tf.constant(0)

    step.get_concrete_function(spec)
    return kinds[0]


@pytest.mark.parametrize("spec", [IDS, FIXED], ids=["open", "fixed"])
@pytest.mark.parametrize(("look_up", "kind"), SAME)
def test_the_operations_before_a_look_up_tell_what_it_depends_on(
    spec: Any, look_up: Callable[[Any], Any], kind: Lookup
) -> None:
    assert found(look_up, spec) is kind


@pytest.mark.parametrize(("spec", "look_up", "kind"), BY_SPEC)
def test_the_shape_of_rows_tells_whether_a_look_up_repeats(
    spec: Any, look_up: Callable[[Any], Any], kind: Lookup
) -> None:
    assert found(look_up, spec) is kind


def test_a_batch_that_is_not_known_is_taken_for_rows() -> None:
    assert found(lambda ids: tf.range(6), IDS, known=False) is Lookup.OF_ROWS
