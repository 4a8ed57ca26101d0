# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.by_rows.inlined: functions that a step calls become parts of its graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from dtjob_trainer.models.by_rows import inlined


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


def test_methods_know_their_object() -> None:
    class Model:
        factor = 5.0

        @tf.function
        def step(self, value: Any) -> Any:
            return self.factor * value

    assert "Mul" in traced(Model().step, inline=True)


def test_functions_that_are_not_to_be_inlined_stay() -> None:
    function = tf.function(tf.exp, autograph=False)

    def step(value: Any) -> Any:
        with inlined.nothing():
            return function(value)

    assert any("PartitionedCall" in each for each in traced(step, inline=True))


def test_numbers_are_tensors_of_the_types_in_the_signature() -> None:
    @tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    def inner(value: Any, times: Any) -> Any:
        return value * tf.cast(times, value.dtype)

    assert "Cast" in traced(lambda value: inner(value, 3), inline=True)
