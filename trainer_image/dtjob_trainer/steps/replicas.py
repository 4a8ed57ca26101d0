# SPDX-License-Identifier: Apache-2.0
"""What all replicas of a step do together: decide, and assign variables. For use inside a replica's step."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.frameworks import variables as framework


def decide(condition: Any, chosen: Callable[[Any], None], otherwise: Callable[[Any], None], values: Any) -> None:
    """Run `chosen` where `condition` (a scalar, the same in all replicas) is true, else `otherwise`, in each replica.

    Both take `values`, this replica's tensors. The decision is made once for all replicas: no strategy can update
    variables within a condition that each replica meets by itself.
    """

    def of_one(condition: Any, run: Callable[[Callable[[Any], None]], Any]) -> None:
        tf.cond(condition, lambda: done(run(chosen)), lambda: done(run(otherwise)))

    def of_all(strategy: Any, condition: Any, values: Any) -> None:
        first = strategy.experimental_local_results(condition)[0]
        of_one(first, lambda branch: strategy.extended.call_for_each_replica(branch, args=(values,)))

    if framework.meets_to_assign():
        tf.distribute.get_replica_context().merge_call(of_all, args=(condition, values))
    else:
        of_one(condition, lambda branch: branch(values))


def done(_: Any = None) -> Any:
    """What both branches of a condition give."""
    return tf.constant(0)


def update(variables: Sequence[Any], function: Callable[..., None], *values: Sequence[Any]) -> None:
    """Call `function` on what each replica holds of each variable (Keras's or TensorFlow's), and of its `values`."""

    def of_all(strategy: Any, values: Any) -> None:
        for variable, mine in zip(variables, values, strict=True):
            strategy.extended.update(value_of(variable), function, args=tuple(mine), group=False)

    framework.merge_call(of_all, tf.distribute.get_strategy(), list(zip(*values, strict=True)))


def assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Assign each of `variables` its value, which all replicas have computed alike."""
    update(variables, lambda variable, value: variable.assign(value), values)


def value_of(variable: Any) -> Any:
    """The `tf.Variable`, also a distributed one, of a Keras variable."""
    return variable.value if isinstance(variable, keras.Variable) else variable
