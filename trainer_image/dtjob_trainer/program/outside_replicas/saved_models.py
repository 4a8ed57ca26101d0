# SPDX-License-Identifier: Apache-2.0
"""Models that a program loads from SavedModels, whose functions it calls outside of `strategy.run`.

The strategy of the job is there in all of the program. TensorFlow loads every model for all replicas, and fails where
its functions are called without `strategy.run` ("Trying to access a placeholder").
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.ambient import outside_strategy


def load_outside_of_scopes(here: Runtime) -> None:
    """Have models that `tf.saved_model.load` loads in no scope of the program's own belong to no strategy."""
    import tensorflow as tf

    import_module("tensorflow.saved_model")  # else an import of it later, as Keras has one, makes the module anew
    strategy, load, depth = here.strategy, tf.saved_model.load, 0
    scope = strategy.scope

    @contextlib.contextmanager
    def counted() -> Iterator[Any]:
        nonlocal depth
        with scope() as entered:
            depth += 1
            try:
                yield entered
            finally:
                depth -= 1

    @functools.wraps(load)
    def loaded(*args: Any, **kwargs: Any) -> Any:
        return load(*args, **kwargs) if depth else outside_strategy(load)(*args, **kwargs)

    # as the ambient strategy is set again, TensorFlow asks for a scope where there is no strategy
    strategy.scope = lambda: counted() if tf.distribute.has_strategy() else scope()
    for home in (tf.saved_model, tf.compat.v2.saved_model):
        home.load = loaded


def call_outside_of_replicas() -> None:
    """Have functions of a model that is loaded for all replicas read this process's variables where no replica calls.

    tf_keras calls them so in a model whose class the program does not have.
    """
    from tensorflow.python.saved_model import load

    load._WrapperFunction._call_flat = _of_this_process(load._WrapperFunction._call_flat)


def _of_this_process(call_flat: Callable[..., Any]) -> Callable[..., Any]:
    """The method `call_flat` of restored functions, with the variables of one device outside of replicas."""
    import tensorflow as tf
    from tensorflow.python.distribute import distribute_utils

    @functools.wraps(call_flat)
    def method(self: Any, args: Any, captured_inputs: Any) -> Any:
        if tf.distribute.in_cross_replica_context():
            captured_inputs = [
                each._primary.handle if distribute_utils.is_distributed_variable(each) else each
                for each in captured_inputs
            ]
        return call_flat(self, args, captured_inputs)

    return method
