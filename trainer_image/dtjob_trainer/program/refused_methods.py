# SPDX-License-Identifier: Apache-2.0
"""Methods of Keras 3's models that cannot be right under the job's strategy are refused when they are called."""

from collections.abc import Callable
from typing import Any

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import ModelFitError

INSTEAD = {
    "train_on_batch": "train with Model.fit, or a step of your own with dtjob_trainer.train(…)",
    "test_on_batch": "call Model.evaluate with all of the data",
}
"""What to use instead of each method."""


def refused(traits: Traits) -> tuple[str, ...]:
    """Methods of Keras 3 that fail inside TensorFlow (2.21, with Keras 3.15) under a strategy like that."""
    return tuple(INSTEAD) if traits.asynchronous or traits.collective else ()


def refuse_where_wrong(task: Task) -> None:
    """Have those methods of Keras 3's models raise ModelFitError that are wrong in this process.

    Only for models made under the job's strategy, and never tf_keras's, which work.
    """
    import keras
    import tensorflow as tf

    for method in refused(task.traits):
        where, why = f"under {task.traits.name}", "Keras 3 fails inside TensorFlow there"
        original = getattr(keras.Model, method)
        setattr(keras.Model, method, _refusal(method, where, why, original, tf.distribute.get_strategy()))


def _refusal(method: str, where: str, why: str, original: Callable[..., Any], strategy: Any) -> Callable[..., Any]:
    """`original` for models of other strategies than `strategy`."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.distribute_strategy is not strategy:
            return original(self, *args, **kwargs)
        raise ModelFitError(f"Model.{method} cannot be used {where}: {why}; {INSTEAD[method]}")

    return refuse
