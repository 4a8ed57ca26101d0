# SPDX-License-Identifier: Apache-2.0
"""`strategy.reduce` of a value that is no result of `strategy.run`, such as a number, with several replicas."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, tensorflow


def count_for_each_replica() -> None:
    """Have the sum of a value that is the same for all replicas be what they add up to.

    So MultiWorkerMirrored does it. Other strategies raise ValueError if they have several replicas.
    """
    hooks.put(tensorflow.REDUCE, counting)


def counting(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """The method `reduce` of strategies whose replicas are all in this process."""

    def method(self: Any, reduce_op: Any, value: Any) -> Any:
        is_sum = reduce_op == tf.distribute.ReduceOp.SUM
        of_replicas = isinstance(value, tf.distribute.DistributedValues) or tf.nest.is_nested(value)
        if tensorflow.replicas_of(self) == 1 or not is_sum or of_replicas:
            return reduce(self, reduce_op, value)
        same = tf.convert_to_tensor(value)
        return same * tf.cast(tensorflow.replicas_of(self), same.dtype)

    return method
