# SPDX-License-Identifier: Apache-2.0
"""The states of tf_keras's metrics, put together in one exchange between all tasks.

By itself tf_keras makes one for each variable as it reads it: those of the loss alone took as long as a small step.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks import variables as framework
from dtjob_trainer.models.variables import sum_of
from dtjob_trainer.strategies.collective import Group

_ADD_UP = (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN)


@contextlib.contextmanager
def states_of_all(variables: Sequence[Any], group: Group) -> Iterator[None]:
    """While this lasts, each of `variables` (TensorFlow's) reads as all replicas' states of it together. Collective.

    Left to TensorFlow: variables that replicas do not change each by itself, what is neither sum nor mean, and what a
    `tf.function` reads, which would keep the values that it was traced with.
    """
    merged = {id(v): v for v in variables if framework.is_counted(v) and v.aggregation in _ADD_UP}
    if not merged:
        yield
        return
    sums = [sum_of(group.strategy.experimental_local_results(v)) for v in merged.values()]
    values = {}
    for variable, total in zip(merged.values(), group.sum_each(sums), strict=True):
        copies = group.replicas if variable.aggregation == tf.VariableAggregation.MEAN else 1
        values[id(variable)] = tf.constant((total / copies).astype(variable.dtype.as_numpy_dtype))

    def reading(own: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda self: values[id(self)] if id(self) in values and tf.executing_eagerly() else own(self)

    with hooks.during(framework.COUNTED_READ, reading):
        yield
