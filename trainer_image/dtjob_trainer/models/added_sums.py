# SPDX-License-Identifier: Apache-2.0
"""What replicas add to a variable that sums over them: one device's sum."""

from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3, variables
from dtjob_trainer.models.cuts import Cut
from dtjob_trainer.models.metric_updates import counting


def counting_once_in_tensorflow() -> AbstractContextManager[None]:
    """The same for layers of tf_keras, whose variables are TensorFlow's own and add by themselves."""

    def adding(own: Any) -> Any:
        def add(self: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            return own(self, addend_of(self, value), *args, **kwargs)

        return add

    return hooks.during(variables.ADDED, adding)


def addend_of(variable: Any, value: Any) -> Any:
    """What a replica adds of `value` to TensorFlow's `variable`."""
    cut = counting.get()
    on_read = variable.synchronization is tf.VariableSynchronization.ON_READ
    if cut is None or on_read or variable.aggregation is not tf.VariableAggregation.SUM:
        return value
    return addend(cut, tf.cast(value, variable.dtype))


def counting_once() -> AbstractContextManager[None]:
    """While this lasts, a layer of Keras 3 adds to a variable of aggregation `sum` what it would on one device.

    Keras's `assign_add` is `assign(self + value)`, of which the sum over replicas counts the old value once for each.
    Here the values are summed, and added by the variable's own operation.
    """

    def adding(own: Any) -> Any:
        sign = 1 if own.__name__ == "assign_add" else -1

        def add(self: Any, value: Any) -> Any:
            cut = counting.get()
            variable = self.value
            if cut is None or not sums(self) or not isinstance(variable, tf.Variable):
                return own(self, value)
            return variable.assign_add(sign * addend(cut, tf.cast(value, variable.dtype)))

        return add

    return hooks.during(keras3.ADD_ONCE, adding)


def sums(variable: Any) -> bool:
    """Whether each write of all replicas is to be their sum: no metric's, which are summed where they are read."""
    return bool(variable.aggregation == "sum" and variable.synchronization != "on_read")


def addend(cut: Cut, value: Any) -> Any:
    """What a replica adds of `value`: none of a row that only stands in; of a constant the first replica all."""
    if cut.replicas == 1:
        return value
    if tf.get_static_value(value) is None:
        return cut.counted(value)
    first = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 0)
    return value * tf.cast(first, value.dtype)
