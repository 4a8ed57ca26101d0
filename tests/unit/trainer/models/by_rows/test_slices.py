# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.by_rows.slices: parts of a traced step that can be called with other rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.models.by_rows.slices import Edge, Slice, UnknownPartError, cut_out, key_of, maker_of


def part_of(step: Callable[[Any], tuple[Any, list[Any]]]) -> Slice:
    """The slice of what `step`, of rows of two numbers, gives: the target, and tensors to begin at."""
    found = []

    def traced(rows: Any) -> Any:
        target, begin = step(rows)
        found.append(cut_out(target, Edge({key_of(each) for each in begin})))
        return target

    tf.function(traced).get_concrete_function(tf.TensorSpec([None, 2]))
    return found[0]


def test_a_slice_begins_at_the_given_tensors_and_at_variables() -> None:
    weights = tf.Variable([[2.0], [3.0]])

    def step(rows: Any) -> tuple[Any, list[Any]]:
        hidden = tf.exp(rows)
        return tf.reduce_sum(hidden @ weights), [hidden]

    part = part_of(step)
    assert [source.kind for source in part.sources] == ["rows", "free"]
    assert part.function()(tf.ones([4, 2]), tf.ones([2, 1])).numpy() == 8.0


def test_branches_and_loops_are_taken_along() -> None:
    def step(rows: Any) -> tuple[Any, list[Any]]:
        more = tf.cond(tf.shape(rows)[0] > 2, lambda: rows * 2.0, lambda: rows)
        _, total = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + tf.reduce_sum(more)), (0, 0.0))
        return total, []

    function = part_of(step).function()
    assert [function(tf.ones([count, 2])).numpy() for count in (2, 3)] == [12.0, 36.0]


def test_random_numbers_are_given_from_outside() -> None:
    part = part_of(lambda rows: (tf.reduce_sum(rows + tf.random.normal(tf.shape(rows))), []))
    assert len(part.sources) == 2
    assert part.function()(tf.ones([1, 2]), tf.zeros([1, 2])).numpy() == 2.0


def test_gradients_flow_through_it() -> None:
    function = part_of(lambda rows: (tf.reduce_sum(rows**2), [])).function()
    rows = tf.constant([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        value = function(rows)
    np.testing.assert_allclose(tape.gradient(value, rows), [[2.0, 4.0]])


def test_equal_parts_have_equal_digests() -> None:
    def part(factor: float) -> Slice:
        return part_of(lambda rows: (tf.reduce_sum(rows) * factor, []))

    assert part(2.0).digest == part(2.0).digest
    assert part(2.0).digest != part(3.0).digest


def test_a_gradient_that_the_program_has_written_cannot_be_had_elsewhere() -> None:
    @tf.custom_gradient
    def clipped(value: Any) -> Any:
        return value * 1.0, lambda gradient: tf.minimum(gradient, 1.0)

    assert not part_of(lambda rows: (tf.reduce_sum(clipped(rows)), [])).differentiable
    assert part_of(lambda rows: (tf.reduce_sum(rows), [])).differentiable


def test_a_slice_that_depends_on_text_is_refused() -> None:
    def step(rows: Any) -> tuple[Any, list[Any]]:
        text = tf.strings.as_string(rows)
        return tf.reduce_sum(tf.strings.to_number(text)), [text]

    with pytest.raises(UnknownPartError, match="of type string"):
        part_of(step)


def test_ragged_tensors_are_refused() -> None:
    def traced(rows: Any) -> Any:
        parts = {key_of(part) for part in tf.nest.flatten(rows, expand_composites=True)}
        target = tf.reduce_sum(rows.to_tensor())
        with pytest.raises(UnknownPartError, match="ragged or sparse"):
            cut_out(target, Edge(parts=parts))
        return target

    tf.function(traced).get_concrete_function(tf.RaggedTensorSpec([None, None]))


def test_the_line_of_the_program_is_known() -> None:
    operations = []

    def step(rows: Any) -> tuple[Any, list[Any]]:
        target = tf.reduce_sum(rows)
        operations.append(target.op)
        return target, []

    part_of(step)
    found = maker_of(operations[0], lambda file: file != __file__)
    assert found == (__file__, step.__code__.co_firstlineno + 1)
    assert maker_of(operations[0], lambda file: True) is None
