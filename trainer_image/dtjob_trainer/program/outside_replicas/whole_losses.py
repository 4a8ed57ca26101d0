# SPDX-License-Identifier: Apache-2.0
"""Losses of tf_keras that a program calls outside of `strategy.run`, such as a layer while a model is built of it.

tf_keras refuses to take means wherever there is a strategy. Outside of replicas a loss gets all rows at once.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, tf_keras


def take_means() -> None:
    """Have losses of tf_keras take means outside of replicas, once the program imports it."""
    hooks.put(tf_keras.MEANS, taking_means)


def taking_means(get_reduction: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The method `get_reduction` of losses, with which a mean is allowed where the call is in no replica."""

    def method(self: Any) -> Any:
        if not tf.distribute.in_cross_replica_context():
            return get_reduction(self)
        held = tf_keras.allow_means(self, True)
        try:
            return get_reduction(self)
        finally:
            tf_keras.allow_means(self, held)

    return method
