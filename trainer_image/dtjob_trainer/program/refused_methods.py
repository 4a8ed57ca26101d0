# SPDX-License-Identifier: Apache-2.0
"""Methods of Keras 3's models that cannot be right under the job's strategy are refused when they are called."""

from collections.abc import Callable
from functools import partial
from typing import Any

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.frameworks import hooks, keras3

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
    import tensorflow as tf

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
