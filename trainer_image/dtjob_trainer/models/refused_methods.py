"""Keras 3's own `Model.fit` in a job: left alone where it is right, refused at once where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import ModelFitError

_TRAINING = ("fit", "evaluate", "train_on_batch", "test_on_batch")
INSTEAD = {
    "fit": "train with dtjob_trainer.fit(model, x, y, …), which also saves and resumes the run",
    "evaluate": "give validation_data to dtjob_trainer.fit(…), or replicaSpecs.evaluator to the job",
    "train_on_batch": "train with dtjob_trainer.fit(model, x, y, …), or a step of your own with dtjob_trainer.train(…)",
    "predict": "call model.predict_on_batch(x), or model(x), on one batch after the other",
    "test_on_batch": "give validation_data to dtjob_trainer.fit(…), or replicaSpecs.evaluator to the job",
}
"""What to use instead of each method."""


def refused(traits: Traits) -> tuple[str, ...]:
    """Methods of Keras 3 that fail inside TensorFlow (2.21, with Keras 3.15) under a strategy like that."""
    if traits.asynchronous:
        return (*_TRAINING, "predict")
    return _TRAINING if traits.collective else ()


def refuse_where_wrong(task: Task) -> None:
    """Have those methods of Keras 3's models raise ModelFitError that are wrong in this process.

    Only for models made under the job's strategy, and never tf_keras's, which work.
    """
    import keras
    import tensorflow as tf

    if task.is_evaluator:
        why = "the job's evaluator follows checkpoints, and it writes none"
        keras.Model.fit = _refusal("fit", "in a job with replicaSpecs.evaluator", why, keras.Model.fit, None)
    for method in refused(task.traits):
        where, why = f"under {task.traits.name}", "Keras 3 fails inside TensorFlow there"
        original = getattr(keras.Model, method)
        setattr(keras.Model, method, _refusal(method, where, why, original, tf.distribute.get_strategy()))


def _refusal(
    method: str, where: str, why: str, original: Callable[..., Any], strategy: Any | None
) -> Callable[..., Any]:
    """`original` for models of other strategies than `strategy`, and for none where that is None."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        if strategy is not None and self.distribute_strategy is not strategy:
            return original(self, *args, **kwargs)
        raise ModelFitError(f"Model.{method} cannot be used {where}: {why}; {INSTEAD[method]}")

    return refuse
