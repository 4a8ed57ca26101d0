# SPDX-License-Identifier: Apache-2.0
"""What a program calls outside of `strategy.run`, where TensorFlow and tf_keras have errors under a strategy.

- Models from SavedModels: the strategy of the job is there in all of the program. TensorFlow loads every model for all
  replicas, and fails if a function of the model is called without `strategy.run` ("Trying to access a placeholder").
- `strategy.reduce` of a value that is no result of `strategy.run`, such as a number, with several replicas.
- `float` and `int` of a variable.
- Losses of tf_keras, such as a layer while a model is built of it. tf_keras refuses to take means wherever there is a
  strategy. Outside of replicas a loss gets all rows at once.
- Loops under ParameterServer without a `ClusterCoordinator`, by which TensorFlow runs steps on workers. A loop that
  calls `strategy.run` by itself, as under all other strategies, runs in the chief.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, tensorflow, tf_keras, variables
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.ambient import outside_strategy

IN_CHIEF = (
    "this loop runs in the chief alone, as ParameterServer gives workers the steps of ClusterCoordinator.schedule(…); "
    "train with Model.fit or dtjob_trainer.train(…), or set spec.strategy to MultiWorkerMirrored, to use all tasks"
)


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

    def enter(scope: Callable[[], Any]) -> Any:
        # as the ambient strategy is set again, TensorFlow asks for a scope where there is no strategy
        return counted(scope) if tf.distribute.has_strategy() else scope()

    def load(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return (own if depth else outside_strategy(own))(*args, **kwargs)

    hooks.put(tensorflow.SCOPE, hooks.around(enter), on=here.strategy)
    hooks.put(tensorflow.LOAD, hooks.around(load))


def call_outside_of_replicas() -> None:
    """Have functions of a model that is loaded for all replicas read this process's variables where no replica calls.

    tf_keras calls them so in a model whose class the program does not have.
    """

    def call_flat(own: Callable[..., Any], self: Any, args: Any, captured_inputs: Any) -> Any:
        if tf.distribute.in_cross_replica_context():
            captured_inputs = [tensorflow.handle_here(each) for each in captured_inputs]
        return own(self, args, captured_inputs)

    hooks.put(tensorflow.RESTORED_FUNCTION, hooks.around(call_flat))


def count_for_each_replica() -> None:
    """Have the sum of a value that is the same for all replicas be what they add up to.

    So MultiWorkerMirrored does it. Other strategies raise ValueError if they have several replicas.
    """
    hooks.put(tensorflow.REDUCE, hooks.around(counted_sum))


def counted_sum(reduce: Callable[..., Any], strategy: Any, reduce_op: Any, value: Any) -> Any:
    """`strategy.reduce(…)` in place of its own `reduce`."""
    is_sum = reduce_op == tf.distribute.ReduceOp.SUM
    of_replicas = isinstance(value, tf.distribute.DistributedValues) or tf.nest.is_nested(value)
    if tensorflow.replicas_of(strategy) == 1 or not is_sum or of_replicas:
        return reduce(strategy, reduce_op, value)
    same = tf.convert_to_tensor(value)
    return same * tf.cast(tensorflow.replicas_of(strategy), same.dtype)


def read_variables() -> None:
    """Have `float` and `int` read variables of several replicas, as they read those of one device."""
    hooks.put(variables.NUMBERS["float"], hooks.around(lambda _, variable: float(variable.numpy())))
    hooks.put(variables.NUMBERS["int"], hooks.around(lambda _, variable: int(variable.numpy())))


def take_means() -> None:
    """Have losses of tf_keras take means outside of replicas, once the program imports it."""
    hooks.put(tf_keras.MEANS, hooks.around(reduction_of))


def reduction_of(get_reduction: Callable[[Any], Any], loss: Any) -> Any:
    """The reduction of a loss, by tf_keras's own `get_reduction`. A mean is allowed if the call is in no replica."""
    if not tf.distribute.in_cross_replica_context():
        return get_reduction(loss)
    held = tf_keras.allow_means(loss, True)
    try:
        return get_reduction(loss)
    finally:
        tf_keras.allow_means(loss, held)


def iterate_in_chief(here: Runtime) -> None:
    """Have data of `experimental_distribute_dataset` and its like be there in this process of ParameterServer too.

    TensorFlow leaves it to `ClusterCoordinator.create_per_worker_dataset` to build such data, for the workers alone.
    """
    warn = functools.cache(here.warn)

    def distribute(own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        data = own(*args, **kwargs)
        tensorflow.build_data(data)
        return data

    def build(own: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        tensorflow.build_data_again(self)  # the coordinator may build what is ready for this process
        own(self, *args, **kwargs)

    def iterate(own: Callable[[Any], Any], self: Any) -> Any:
        if not tf.inside_function():  # in a function it may be a worker's
            warn(IN_CHIEF)
        return own(self)

    hooks.put(tensorflow.CHIEFS_DATA, hooks.around(distribute), on=here.strategy.extended)
    hooks.put(tensorflow.CHIEFS_DATA_BUILT, hooks.around(build))
    hooks.put(tensorflow.CHIEFS_DATA_READ, hooks.around(iterate))
