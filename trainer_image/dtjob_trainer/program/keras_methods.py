# SPDX-License-Identifier: Apache-2.0
"""`Model.fit` and `evaluate` in a job's program, for Keras 3 and tf_keras: they are dtjob's.

So a script that calls them trains under the job's strategy, with checkpoints and resume, and with one device's numbers.
Methods of Keras 3 that cannot be right under the strategy are refused when they are called.
"""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any

import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.frameworks import hooks, keras3, tf_keras
from dtjob_trainer.models import own_fit
from dtjob_trainer.process import runtime
from dtjob_trainer.program import predictions

VERBOSE = 1
"""What "auto" means for both methods: what Keras prints, at the chief. `dtjob_trainer.fit` prints lines of its own."""
INSTEAD = {
    "train_on_batch": "train with Model.fit, or a step of your own with dtjob_trainer.train(…)",
    "test_on_batch": "call Model.evaluate with all of the data",
}
"""What to use instead of each method."""
_of_keras: ContextVar[bool] = ContextVar("of_keras", default=False)
"""Whether a `fit` within a callback of another one runs: it is Keras's own, and so is what it calls."""


def use_ours(traits: Traits) -> None:
    """Have models of Keras 3 train and evaluate by dtjob, and those of tf_keras once the program imports it.

    On a TPU, models of tf_keras keep their own methods.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    for package in (keras3,) if traits.tpu else (keras3, tf_keras):
        hooks.put(package.FIT, lambda original: _ours(original, "fit"))
        hooks.put(package.EVALUATE, lambda original: _ours(original, "evaluate"))
        predictions.replace(package.PREDICT, package.PREDICT_ON_BATCH, traits, replicas)


def _ours(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """dtjob's function of that `name` in place of the method `original`, for models of the job's strategy.

    It is imported when it is called: what it needs of a package may be missing, and other programs do not need that.
    """
    signature = inspect.signature(original)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        here = runtime.current()
        if self.distribute_strategy is not here.strategy or _of_keras.get():
            return original(self, *args, **kwargs)
        if name == "fit" and here.training and here.members == 1 and not here.traits.asynchronous:
            token = _of_keras.set(True)
            try:
                return original(self, *args, **kwargs)
            finally:
                _of_keras.reset(token)
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given |= given.pop("kwargs", {})
        if given.setdefault("verbose", "auto") == "auto":
            given["verbose"] = VERBOSE
        model = given.pop("self")
        ours = getattr(import_module(f"dtjob_trainer.loops.{name}"), name)
        with own_fit.running(name):  # a class that overrides the method has been called before this one
            return ours(model, **given)

    return method


def refused(traits: Traits) -> tuple[str, ...]:
    """Methods of Keras 3 that fail inside TensorFlow (2.21, with Keras 3.15) under a strategy of these `traits`."""
    return tuple(INSTEAD) if traits.asynchronous or traits.collective else ()


def refuse_where_wrong(task: Task) -> None:
    """Have those methods of Keras 3's models raise ModelFitError that are wrong in this process.

    Only for models made under the job's strategy, and never tf_keras's, which work.
    """
    where, strategy = f"under {task.traits.name}", tf.distribute.get_strategy()
    for method in refused(task.traits):
        hooks.put(keras3.STEPS_BY_HAND[method], partial(_refusal, method, where, strategy))


def _refusal(method: str, where: str, strategy: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` for models of other strategies than `strategy`."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.distribute_strategy is not strategy:
            return original(self, *args, **kwargs)
        raise ModelFitError(
            f"Model.{method} cannot be used {where}: Keras 3 fails inside TensorFlow there; {INSTEAD[method]}"
        )

    return refuse
