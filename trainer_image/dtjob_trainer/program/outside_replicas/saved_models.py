# SPDX-License-Identifier: Apache-2.0
"""Models that a program loads from SavedModels, whose functions it calls outside of `strategy.run`.

The strategy of the job is there in all of the program. TensorFlow loads every model for all replicas, and fails where
its functions are called without `strategy.run` ("Trying to access a placeholder").
"""

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks import hooks, tensorflow
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.ambient import outside_strategy


def load_outside_of_scopes(here: Runtime) -> None:
    """Have models that `tf.saved_model.load` loads in no scope of the program's own belong to no strategy."""
    import tensorflow as tf

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
    import tensorflow as tf

    def method(self: Any, args: Any, captured_inputs: Any) -> Any:
        if tf.distribute.in_cross_replica_context():
            captured_inputs = [tensorflow.handle_here(each) for each in captured_inputs]
        return call_flat(self, args, captured_inputs)

    return method
