# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.placement.lookups: what look-ups depend on, as the operations before them show it."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.placement.lookups import Lookup, batch_of_step, kind_of
from dtjob_trainer.placement.shard import setting

IDS = tf.TensorSpec([None, 6], tf.int32)
OPEN = tf.TensorSpec([None, None], tf.int32)
DISTANCES = [0, 1, 1, 0]
VARIABLE = tf.Variable(DISTANCES)

OF_ROWS: list[Callable[[Any], Any]] = [
    lambda ids: tf.reshape(ids, [-1]),
    lambda ids: tf.where(ids < 0, ids + 9, ids),
    lambda ids: tf.range(tf.shape(ids)[0]),
    lambda ids: tf.reshape(tf.zeros_like(ids) + tf.range(6), [-1]),
    lambda ids: tf.boolean_mask(ids, ids > 0),
    lambda ids: tf.reduce_max(ids, 0),
]
FOR_ALL_ROWS: list[Callable[[Any], Any]] = [
    lambda ids: tf.range(6),
    lambda ids: tf.constant(DISTANCES),
    lambda ids: tf.range(tf.shape(ids)[1]),
    lambda ids: tf.reshape(tf.range(6), [1, 6]),
]
DIFFERENT: list[Callable[[Any], Any]] = [
    lambda ids: tf.unique(tf.reshape(ids, [-1]))[0],
    lambda ids: tf.unique(tf.reshape(ids, [-1]))[0] + 1,
]


FIXED = tf.TensorSpec([4, 6], tf.int32)
"""As in a custom loop, where each step has equally many rows."""


def found(look_up: Callable[[Any], Any], spec: Any, *, known: bool = True) -> Lookup:
    kinds = []

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def step(ids: Any) -> Any:
        with setting(batch_of_step, (ids, None) if known else None):
            kinds.append(kind_of(look_up(ids)))
        return tf.constant(0)

    step.get_concrete_function(spec)
    return kinds[0]


@pytest.mark.parametrize("look_up", OF_ROWS)
def test_look_ups_that_depend_on_each_row_are_found(look_up: Callable[[Any], Any]) -> None:
    assert found(look_up, IDS) is Lookup.OF_ROWS


@pytest.mark.parametrize("spec", [IDS, FIXED], ids=["open", "fixed"])
@pytest.mark.parametrize("look_up", FOR_ALL_ROWS)
def test_look_ups_that_are_the_same_for_all_rows_are_found(look_up: Callable[[Any], Any], spec: Any) -> None:
    assert found(look_up, spec) is Lookup.FOR_ALL_ROWS


@pytest.mark.parametrize("spec", [IDS, FIXED], ids=["open", "fixed"])
@pytest.mark.parametrize("look_up", DIFFERENT)
def test_look_ups_without_repetitions_are_found(look_up: Callable[[Any], Any], spec: Any) -> None:
    assert found(look_up, spec) is Lookup.DIFFERENT


def test_places_of_an_open_length_may_be_of_unlike_numbers_on_replicas() -> None:
    assert found(lambda ids: tf.range(tf.shape(ids)[1]), OPEN) is Lookup.DIFFERENT


def test_a_batch_that_is_not_known_is_taken_for_rows() -> None:
    assert found(lambda ids: tf.range(6), IDS, known=False) is Lookup.OF_ROWS


@pytest.mark.parametrize(
    "spec", [tf.RaggedTensorSpec([None, None], tf.int64), tf.SparseTensorSpec([None, 6], tf.int64)]
)
def test_ragged_and_sparse_rows_have_their_own(spec: Any) -> None:
    values = (lambda ids: ids.flat_values) if isinstance(spec, tf.RaggedTensorSpec) else (lambda ids: ids.values)
    assert found(values, spec) is Lookup.OF_ROWS
    assert found(lambda ids: tf.range(6), spec) is Lookup.FOR_ALL_ROWS


def test_words_may_be_rows() -> None:
    spec = tf.TensorSpec([None, 2], tf.string)
    assert found(lambda words: tf.reshape(tf.strings.length(words), [-1]), spec) is Lookup.OF_ROWS


@pytest.mark.parametrize("look_up", [*OF_ROWS[:2], *OF_ROWS[4:]])
def test_look_ups_of_a_fixed_number_of_rows_depend_on_each_row(look_up: Callable[[Any], Any]) -> None:
    assert found(look_up, FIXED) is Lookup.OF_ROWS


@pytest.mark.parametrize(
    "look_up",
    [
        lambda ids: tf.reshape(tf.zeros_like(ids) + tf.range(6), [-1]),
        lambda ids: tf.tile(tf.range(6), [4]),
        lambda ids: tf.repeat(tf.range(6), 4),
        lambda ids: tf.zeros([8], tf.int32),
        lambda ids: tf.convert_to_tensor(VARIABLE),
    ],
)
def test_look_ups_that_may_repeat_for_a_fixed_number_of_rows_are_unknown(look_up: Callable[[Any], Any]) -> None:
    assert found(look_up, FIXED) is Lookup.UNKNOWN


def test_a_single_row_of_a_step_has_its_own() -> None:
    assert found(lambda ids: ids[:, 0], tf.TensorSpec([1, 6], tf.int32)) is Lookup.OF_ROWS


TABLE = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.range(9), tf.range(9)), 0)


def test_a_variable_says_nothing_of_rows() -> None:
    assert found(lambda ids: tf.convert_to_tensor(VARIABLE), IDS) is Lookup.FOR_ALL_ROWS


@pytest.mark.parametrize("spec", [IDS, FIXED])
@pytest.mark.parametrize(
    ("look_up", "kind"),
    [
        (lambda ids: tf.reshape(ids, [-1]) + VARIABLE[0], Lookup.OF_ROWS),
        (lambda ids: tf.reshape(TABLE.lookup(ids), [-1]), Lookup.OF_ROWS),
        (lambda ids: tf.function(lambda: tf.range(6) + VARIABLE[0])(), Lookup.UNKNOWN),
        (lambda ids: tf.random.uniform([6], 0, 9, tf.int32), Lookup.UNKNOWN),
    ],
)
def test_look_ups_through_operations_with_a_state_are_found_or_unknown(
    spec: Any, look_up: Callable[[Any], Any], kind: Lookup
) -> None:
    assert found(look_up, spec) is kind
