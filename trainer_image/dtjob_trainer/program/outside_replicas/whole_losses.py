# SPDX-License-Identifier: Apache-2.0
"""Losses of tf_keras that a program calls outside of `strategy.run`, such as a layer while a model is built of it.

tf_keras refuses to take means wherever there is a strategy. Outside of replicas a loss gets all rows at once.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import wrapt


def take_means() -> None:
    """Have losses of tf_keras take means outside of replicas, once the program imports it."""
    wrapt.register_post_import_hook(_replace, "tf_keras.src.losses")


def _replace(module: Any) -> None:
    module.Loss._get_reduction = taking_means(module.Loss._get_reduction)


def taking_means(get_reduction: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The method `get_reduction` of losses, with which a mean is allowed where the call is in no replica."""

    @functools.wraps(get_reduction)
    def method(self: Any) -> Any:
        if not tf.distribute.in_cross_replica_context():
            return get_reduction(self)
        held = self._allow_sum_over_batch_size
        self._allow_sum_over_batch_size = True
        try:
            return get_reduction(self)
        finally:
            self._allow_sum_over_batch_size = held

    return method
