# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.by_rows.gradient_functions: both ways to take gradients are heard, for as long as asked."""

from typing import Any

import tensorflow as tf

from dtjob_trainer.models.by_rows import gradient_functions


def test_gradients_of_tapes_and_of_graphs_are_heard_while_it_lasts() -> None:
    own = tf.gradients, tf.GradientTape.gradient

    def doubled(gradient: gradient_functions.Gradient) -> gradient_functions.Gradient:
        def take(target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            return [2.0 * each for each in gradient(target, sources, *args, **kwargs)]

        return take

    @tf.function
    def both(value: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(value)
            square = value**2
        return tape.gradient(square, [value]), tf.gradients(square, [value])

    with gradient_functions.heard(doubled):
        assert [each.numpy() for (each,) in both(tf.constant(3.0))] == [12.0, 12.0]
    assert own == (tf.gradients, tf.GradientTape.gradient)
