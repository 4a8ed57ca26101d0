# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.steps.inlined: functions that a step calls become parts of its graph."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.steps import inlined


def traced(step: Any, *, inline: bool) -> list[str]:
    """The types of operations of `step`, of a number."""

    def outer(value: Any) -> Any:
        if not inline:
            return step(value)
        with inlined.functions():
            return step(value)

    graph = tf.function(outer, autograph=False).get_concrete_function(tf.TensorSpec([])).graph
    return [operation.type for operation in graph.get_operations()]


def test_a_function_is_traced_into_the_step_and_not_for_later_steps() -> None:
    factor = [2.0]

    @tf.function
    def inner(value: Any) -> Any:
        if value > 0.0:  # by autograph
            value *= factor[0]
        return value

    found = traced(inner, inline=True)
    assert "StatelessIf" in found or "If" in found
    assert not any("PartitionedCall" in each for each in found)
    factor[0] = 3.0
    assert inner(tf.constant(1.0)).numpy() == 3.0
    assert any("PartitionedCall" in each for each in traced(inner, inline=False))


class Model:
    factor = 5.0

    @tf.function
    def step(self, value: Any) -> Any:
        return self.factor * value


MODEL = Model()


@tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
def signed(value: Any, times: Any) -> Any:
    return value * tf.cast(times.dtype.is_integer, value.dtype) * tf.cast(times, value.dtype)


@tf.function
def of_array(array: Any, factor: float = 2.0) -> Any:
    return factor * tf.reduce_sum(array) * len(array.get_shape())


@tf.function
def with_names_of_ours(own: Any, function: Any) -> Any:
    return function(own)


COUNT = tf.Variable(1.0)


@tf.function
def counted() -> Any:
    return COUNT


def counted_before(value: Any) -> Any:
    before = counted()
    COUNT.assign_add(value)
    COUNT.assign_sub(value)
    with tf.control_dependencies([COUNT.assign_add(value)]):
        return tf.identity(before)


@pytest.mark.parametrize(
    "step",
    [
        lambda value: MODEL.step(value),
        lambda value: signed(value=value, times=3),
        lambda value: signed(2.0, np.int32(3)) + value,
        lambda value: of_array(np.ones(3)),
        lambda value: of_array(array=[np.float32(1.0)][0]) + of_array(np.ones([2, 2], np.float32), factor=3.0),
        lambda value: with_names_of_ours(own=value, function=tf.square),
        lambda value: tf.function(lambda: [1.0, None, {"a": 2}])()[2]["a"].dtype.is_integer * value,
        counted_before,
    ],
)
def test_a_step_computes_the_same_as_with_functions(step: Any) -> None:
    def inlining(value: Any) -> Any:
        with inlined.functions():
            return step(value)

    COUNT.assign(1.0)
    expected = tf.function(step, autograph=False)(tf.constant(7.0))
    COUNT.assign(1.0)
    assert tf.function(inlining, autograph=False)(tf.constant(7.0)).numpy() == expected.numpy()


def test_functions_that_tensorflow_finds_by_attributes_stay() -> None:
    """An LSTM of tf_keras is one on a GPU: TensorFlow exchanges it for cuDNN's."""
    found = tf.function(tf.exp, autograph=False, experimental_attributes={"api_implements": "lstm_1"})
    assert any("PartitionedCall" in each for each in traced(found, inline=True))


def test_a_variable_that_a_step_makes_has_its_initial_value_before_the_step_runs() -> None:
    made: list[Any] = []

    def step(value: Any) -> Any:
        if not made:
            made.append(tf.Variable(lambda: tf.fill([2], 3.0)))
        return value * made[0]

    assert not any(kind in ("If", "StatelessIf", "AssignVariableOp") for kind in traced(step, inline=True))
    assert made[0].numpy().tolist() == [3.0, 3.0]


def test_a_variable_may_begin_as_the_rows_of_the_first_step() -> None:
    made: list[Any] = []

    def step(value: Any) -> Any:
        if not made:
            made.append(tf.Variable(value))
        return made[0] + value

    def inlining(value: Any) -> Any:
        with inlined.functions():
            return step(value)

    assert tf.function(inlining, autograph=False)(tf.constant(4.0)).numpy() == 8.0


class TwoReplicas:
    num_replicas_in_sync = 2


def test_the_log_says_once_that_xla_is_left_aside_where_replicas_share_a_step(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    @tf.function(jit_compile=True)
    def by_xla(value: Any) -> Any:
        return 2.0 * value

    traced(by_xla, inline=True)
    assert not recwarn.list
    monkeypatch.setattr(tf.distribute, "get_strategy", TwoReplicas)
    for _ in range(2):
        traced(by_xla, inline=True)
    (warned,) = recwarn.list
    assert str(warned.message).startswith("jit_compile=True of by_xla is left aside")
