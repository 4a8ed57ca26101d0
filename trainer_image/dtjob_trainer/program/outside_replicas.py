# SPDX-License-Identifier: Apache-2.0
"""What a program calls outside of `strategy.run`, where TensorFlow and tf_keras have errors under a strategy.

- Models from SavedModels: the strategy of the job is there in all of the program. TensorFlow loads every model for all
  replicas, and fails if a function of the model is called without `strategy.run` ("Trying to access a placeholder").
- `strategy.reduce` of a value that is no result of `strategy.run`, such as a number, with several replicas.
- `float` and `int` of a variable.
- Losses of tf_keras, such as a layer while a model is built of it. tf_keras refuses to take means wherever there is a
  strategy. Outside of replicas a loss gets all rows at once.
"""

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, tensorflow, tf_keras, variables
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.ambient import outside_strategy


def load_outside_of_scopes(here: Runtime) -> None:
    """Have models that `tf.saved_model.load` loads in no scope of the program's own belong to no strategy."""
    import_module("tensorflow.saved_model")  # else an import of it later, as Keras has one, makes the module anew
    depth = 0

    @contextlib.contextmanager
    def counted(scope: Callable[[], Any]) -> Iterator[Any]:
        nonlocal depth
        with scope() as entered:
            depth += 1
            try:
                yield entered
            finally:
                depth -= 1

    def loading(load: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: (load if depth else outside_strategy(load))(*args, **kwargs)

    # as the ambient strategy is set again, TensorFlow asks for a scope where there is no strategy
    hooks.put(
        tensorflow.SCOPE,
        lambda scope: lambda: counted(scope) if tf.distribute.has_strategy() else scope(),
        on=here.strategy,
    )
    hooks.put(tensorflow.LOAD, loading)


def call_outside_of_replicas() -> None:
    """Have functions of a model that is loaded for all replicas read this process's variables where no replica calls.

    tf_keras calls them so in a model whose class the program does not have.
    """
    hooks.put(tensorflow.RESTORED_FUNCTION, _of_this_process)


def _of_this_process(call_flat: Callable[..., Any]) -> Callable[..., Any]:
    """The method `call_flat` of restored functions, with the variables of one device outside of replicas."""

    def method(self: Any, args: Any, captured_inputs: Any) -> Any:
        if tf.distribute.in_cross_replica_context():
            captured_inputs = [tensorflow.handle_here(each) for each in captured_inputs]
        return call_flat(self, args, captured_inputs)

    return method


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


def read_variables() -> None:
    """Have `float` and `int` read variables of several replicas, as they read those of one device."""

    def reading(of: Callable[[Any], Any]) -> hooks.Wrap:
        return lambda _: lambda self: of(self.numpy())

    hooks.put(variables.NUMBERS["float"], reading(float))
    hooks.put(variables.NUMBERS["int"], reading(int))


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
