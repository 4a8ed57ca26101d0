# SPDX-License-Identifier: Apache-2.0
"""`tf.saved_model.load` outside of a `strategy.scope()` of the program's own gives a model of this process.

The strategy of the job is there in all of the program. TensorFlow would load every model for all replicas, and fail
where its functions are called without `strategy.run` ("Trying to access a placeholder").
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.ambient import outside_strategy


def load_outside_of_scopes(here: Runtime) -> None:
    """Have models that are loaded in no scope of the program's own belong to no strategy."""
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
