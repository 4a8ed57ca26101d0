# SPDX-License-Identifier: Apache-2.0
"""`Model.fit` and `evaluate` in a job's program, for Keras 3 and tf_keras: they are dtjob's.

So a script that calls them trains under the job's strategy, with checkpoints and resume, and with one device's numbers.
`predict` computes on one device where Keras fails with several. Methods of Keras 3 that cannot be right under the
strategy are refused when they are called.
"""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.frameworks import hooks, keras3, tf_keras
from dtjob_trainer.models import own_fit
from dtjob_trainer.placement.shard import setting
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.ambient import outside_strategy

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
        predict_by_one(package.PREDICT, package.PREDICT_ON_BATCH, traits, replicas)


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
            with setting(_of_keras, True):
                return original(self, *args, **kwargs)
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given |= given.pop("kwargs", {})
        if given.setdefault("verbose", "auto") == "auto":
            given["verbose"] = VERBOSE
        model = given.pop("self")
        ours = getattr(import_module(f"dtjob_trainer.loops.{name}"), name)
        with own_fit.running(name):  # a class that overrides the method has been called before this one
            return ours(model, **given)

    return method


def predict_by_one(predict: hooks.Hook, on_batch: hooks.Hook, traits: Traits, replicas: int) -> None:
    """Have models of a package predict on one device, or a batch as `predict` does.

    Keras 3's own `predict_on_batch` gives the whole batch to each replica, and returns the rows of all replicas.
    """
    if on_one_device(traits, replicas):
        hooks.put(predict, hooks.around(_predict_here))
        hooks.put(on_batch, hooks.around(_predict_here))
    elif replicas > 1:
        hooks.put(on_batch, hooks.around(_by_predict))


def on_one_device(traits: Traits, replicas: int) -> bool:
    """Whether models predict on one device of the task that calls, under a strategy with so many `replicas`.

    - In a group, Keras waits at each batch for all other tasks, or fails inside TensorFlow. A call by the chief alone
      would never return.
    - On several CPUs, Keras fails with fewer rows than replicas: there a convolution of no rows has a wrong shape.
    """
    if traits.asynchronous or traits.collective:
        return True
    return replicas > 1 and not traits.tpu and not tf.config.list_logical_devices("GPU")


def _predict_here(predict: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
    with keras3.without_strategy(model):
        return outside_strategy(predict)(model, *args, **kwargs)


def _by_predict(_: Any, model: Any, x: Any) -> Any:
    return model.predict(x, batch_size=len(keras.tree.flatten(x)[0]), verbose=0)


def refused(traits: Traits) -> tuple[str, ...]:
    """Methods of Keras 3 that fail inside TensorFlow (2.21, with Keras 3.15) under a strategy of these `traits`."""
    return tuple(INSTEAD) if traits.asynchronous or traits.collective else ()


def refuse_where_wrong(task: Task) -> None:
    """Have those methods of Keras 3's models raise ModelFitError that are wrong in this process.

    Only for models made under the job's strategy, and never tf_keras's, which work.
    """
    refuse = partial(_refuse, f"under {task.traits.name}", tf.distribute.get_strategy())
    for method in refused(task.traits):
        hooks.put(keras3.STEPS_BY_HAND[method], hooks.around(refuse))


def _refuse(where: str, strategy: Any, own: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
    if model.distribute_strategy is not strategy:
        return own(model, *args, **kwargs)
    name = own.__name__
    raise ModelFitError(f"Model.{name} cannot be used {where}: Keras 3 fails inside TensorFlow there; {INSTEAD[name]}")
