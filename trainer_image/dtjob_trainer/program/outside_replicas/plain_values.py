# SPDX-License-Identifier: Apache-2.0
"""`strategy.reduce` of a value that is no result of `strategy.run`, such as a number, with several replicas."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.distribute_lib import StrategyExtendedV2


def count_for_each_replica() -> None:
    """Have the sum of a value that is the same for all replicas be what they add up to.

    So MultiWorkerMirrored does it. Other strategies raise ValueError if they have several replicas.
    """
    StrategyExtendedV2._reduce = counting(StrategyExtendedV2._reduce)


def counting(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """The method `reduce` of strategies whose replicas are all in this process."""

    @functools.wraps(reduce)
    def method(self: Any, reduce_op: Any, value: Any) -> Any:
        is_sum = reduce_op == tf.distribute.ReduceOp.SUM
        of_replicas = isinstance(value, tf.distribute.DistributedValues) or tf.nest.is_nested(value)
        if self._num_replicas_in_sync == 1 or not is_sum or of_replicas:
            return reduce(self, reduce_op, value)
        same = tf.convert_to_tensor(value)
        return same * tf.cast(self._num_replicas_in_sync, same.dtype)

    return method
