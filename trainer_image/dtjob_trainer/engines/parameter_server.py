"""Steps under ParameterServer: the chief hands them to whichever worker is free, and joins before it reads anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.engines.synchronous import epoch_logs
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.losses import Cut
from dtjob_trainer.strategies.collective import Group

BATCHES_AHEAD = 4
"""Batches of evaluation that each worker has at hand; all that are handed out are in the chief's memory."""


class CoordinatorEngine:
    """Runs steps of a built model on ParameterServer's workers. The same methods as `steps.Engine`.

    Each step is given its examples by the chief: steps are not bound to workers, so this is what makes every example
    count exactly once.
    """

    remote = True
    steps_per_call = 1
    """Steps are handed out one by one, whatever the model was compiled with: none waits for the one before it."""

    def __init__(self, trained: TrainedModel, group: Group) -> None:
        self.trained = trained
        self.group = group
        self._own_step, self._own_test = trained.own_step, trained.own_test
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(group.strategy)
        self.batches_ahead = BATCHES_AHEAD * group.strategy._num_workers
        """Of evaluation, how many batches may wait for the workers."""
        self._last: Any = None
        self._evaluated: Any = None
        self._functions: dict[tuple[str, int], Any] = {}

    def train(self, source: Source, batches: Sequence[Batch]) -> None:
        """Hand out a step for each of `batches`; returns before they are done."""
        for batch in batches:
            self._last = self._schedule("train", source, batch.inputs, batch.total)

    def evaluate(self, source: Source, batches: Sequence[Batch]) -> None:
        """Hand out batches of evaluation."""
        for batch in batches:
            self._evaluated = self._schedule("evaluate", source, batch.inputs, batch.total)

    def wait(self) -> None:
        """Return when every step handed out is done."""
        self._coordinator.join()

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return bool(self._coordinator.done())

    def loss(self) -> float | None:
        """The loss of the step handed out last, once all are done; None where the model's `train_step` gives none."""
        self.wait()
        last = self._last.fetch()
        loss = last.get("loss") if self._own_step else last
        return None if loss is None else float(loss)

    def reset_metrics(self) -> None:
        """Begin the metrics anew."""
        self.wait()
        self.trained.model.reset_metrics()

    def read_metrics(self) -> dict[str, Any]:
        """Loss and metrics since the last reset, of every step handed out."""
        self.wait()
        return self.trained.read_metrics(self.group)

    def epoch_logs(self) -> dict[str, Any]:
        """What callbacks are told after an epoch."""
        metrics = self.read_metrics()
        return epoch_logs(metrics, _fetched(self._last) if self._own_step else None)

    def evaluation_logs(self) -> dict[str, Any]:
        """Loss and metrics of the evaluation so far, or what a `test_step` of its own gave last."""
        metrics = self.read_metrics()
        return epoch_logs(metrics, _fetched(self._evaluated) if self._own_test else None)

    def _schedule(self, kind: str, source: Source, inputs: Any, total: int) -> Any:
        key = (kind, id(source))
        if key not in self._functions:
            body = self.trained.train_replica if kind == "train" else self.trained.evaluate_replica

            def step(inputs: Any, total: Any) -> Any:
                def replica() -> Any:
                    return body(Cut(1, total, total, False), *source.decode(*inputs))

                strategy = self.group.strategy
                return strategy.experimental_local_results(strategy.run(replica))[0]

            # the signature leaves the batch dimension open, so that the last batch is not traced again
            signature = [source.input_spec(), tf.TensorSpec([], tf.int32)]
            self._functions[key] = tf.function(step, autograph=False, input_signature=signature)
        tensors = keras.tree.map_structure(tf.convert_to_tensor, tuple(part for part in inputs if part is not None))
        return self._coordinator.schedule(self._functions[key], args=(tensors, tf.constant(total)))


def _fetched(remote: Any) -> dict[str, float]:
    return {name: float(value) for name, value in remote.fetch().items()}
