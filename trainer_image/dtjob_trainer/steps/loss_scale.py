# SPDX-License-Identifier: Apache-2.0
"""The dynamic loss scale of Keras 3's LossScaleOptimizer under `tf.distribute`: one scale, and one decision a step.

Keras adjusts its scale inside conditions that each replica meets by itself, which fails where replicas share their
variables; and it unscales by what the scale is by then, which under ParameterServer another worker's step may have
changed meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.frameworks import keras3
from dtjob_trainer.steps import replicas


class LossScale:
    """How one LossScaleOptimizer of Keras 3 scales and unscales while its steps are traced."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._scale_loss: Callable[[Any], Any] = optimizer.scale_loss
        self._used: Any = None
        """The scale of the loss in the step that is being traced, where one replica is traced at a time."""

    def scale_loss(self, loss: Any) -> Any:
        """Keras's `scale_loss` with a scale that `apply` knows again. For strategies with one replica a worker."""
        if not self._optimizer.built:
            return self._scale_loss(loss)
        self._used = tf.convert_to_tensor(self._optimizer.dynamic_scale)
        return keras.ops.multiply(loss, self._used)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Keras's `_tf_apply`, for gradients that are summed already: update where all are finite, and adjust the
        scale, unless the step of another worker has done that since this one's loss was scaled."""
        optimizer = self._optimizer
        scale, steps = (tf.convert_to_tensor(v) for v in (optimizer.dynamic_scale, optimizer.step_counter))
        known = self._used is not None and self._used.graph is scale.graph
        used = self._used if known else scale
        variables = trainable_variables or keras3.trained_by(optimizer)

        def unscale(grad: Any, variable: Any) -> Any:
            leave = grad is None or keras3.is_overwritten(optimizer, variable)
            return grad if leave else keras.ops.divide(grad, used)

        finite = optimizer.check_finite(grads)

        def update(grads: Any) -> None:
            optimizer.inner_optimizer.apply(grads, trainable_variables=trainable_variables)

        unscaled = [unscale(grad, variable) for grad, variable in zip(grads, variables, strict=True)]
        replicas.decide(finite, update, lambda _: None, unscaled)
        grows = tf.logical_and(finite, tf.equal(steps, optimizer.dynamic_growth_steps - 1))
        adjusted = tf.where(finite, tf.where(grows, used * 2.0, used), used * 0.5)
        counted = tf.where(tf.logical_and(finite, tf.logical_not(grows)), steps + 1, 0)
        values = [tf.where(tf.equal(scale, used), adjusted, scale), tf.cast(counted, steps.dtype)]
        replicas.assign([optimizer.dynamic_scale, optimizer.step_counter], values)
