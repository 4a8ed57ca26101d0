"""One step of training or evaluation under a synchronous strategy, each traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.losses import Cut
from dtjob_trainer.strategies.collective import Group


class Engine:
    """Runs steps of a built model on every replica of a synchronous strategy (or in one process)."""

    remote = False
    """Whether inputs must be whole batches, as they are computed on other machines."""
    fills_up = False
    """Whether batches are filled up until they divide by the replicas, so that a replica's rows may all be fill."""

    def __init__(self, trained: TrainedModel, group: Group) -> None:
        self.trained = trained
        self.group = group
        self._own_step, self._own_test = trained.own_step, trained.own_test
        self.steps_per_call = 1 if self._own_step or self._own_test else trained.steps_per_call
        """Steps that one call may run, as the model was compiled; those of the model's own come one by one."""
        self._last: Any = None
        self._evaluated: Any = None
        self._functions: dict[tuple[str, int], Any] = {}

    def train(self, source: Source, batches: Sequence[Batch]) -> None:
        """Train one step on each of `batches`, of which there are `steps_per_call` at most."""
        self._last = self._run("train", source, batches)

    def evaluate(self, source: Source, batches: Sequence[Batch]) -> None:
        """Update loss and metrics with batches of evaluation data, sharded as in `train`."""
        self._evaluated = self._run("evaluate", source, batches)

    def traced(self, source: Source) -> Any:
        """The traced function (a `ConcreteFunction`) of the steps that `train` runs on batches of `source`."""
        return self._function("train", source).get_concrete_function()

    def wait(self) -> None:
        """Return when all steps so far are done."""

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return True

    def loss(self) -> float | None:
        """This task's part of the last step's loss; the sum over tasks is the loss of the global batch.

        None where a `train_step` of the model's own gives none.
        """
        loss = self._last.get("loss") if self._own_step else self._last
        return None if loss is None else float(loss)

    def reset_metrics(self) -> None:
        """Begin the metrics anew."""
        self.trained.model.reset_metrics()

    def read_metrics(self) -> dict[str, Any]:
        """Loss and metrics since the last reset, over all tasks. Collective."""
        return self.trained.read_metrics(self.group)

    def logs(self) -> dict[str, Any]:
        """What callbacks are told after a step: metrics so far, or what a `train_step` of its own gave. Collective."""
        return self._sum_of_tasks(self._last) if self._own_step else self.read_metrics()

    def epoch_logs(self) -> dict[str, Any]:
        """What callbacks are told after an epoch, over all tasks. Collective."""
        return epoch_logs(self.read_metrics(), self.logs() if self._own_step else None)

    def evaluation_logs(self) -> dict[str, Any]:
        """Loss and metrics of the evaluation so far, or what a `test_step` of its own gave last. Collective."""
        return epoch_logs(self.read_metrics(), self._sum_of_tasks(self._evaluated) if self._own_test else None)

    def _sum_of_tasks(self, parts: dict[str, Any]) -> dict[str, Any]:
        sums = self.group.sum(np.array([float(value) for value in parts.values()], np.float64))
        return dict(zip(parts, sums.tolist(), strict=True))

    def _run(self, kind: str, source: Source, batches: Sequence[Batch]) -> Any:
        function = self._function(kind, source)
        if self.steps_per_call == 1:
            (batch,) = batches
            return function(batch.inputs, tf.constant(batch.count), tf.constant(batch.total))
        result = None
        for group in [batches] if _alike(batches) else [[batch] for batch in batches]:
            inputs, rows = _stacked([batch.inputs for batch in group])
            counts, totals = [batch.count for batch in group], [batch.total for batch in group]
            result = function(inputs, tf.constant(rows), tf.constant(counts), tf.constant(totals))
        return result

    def _function(self, kind: str, source: Source) -> Any:
        key = (kind, id(source))
        if key not in self._functions:
            body = self.trained.train_replica if kind == "train" else self.trained.evaluate_replica
            may_be_empty = source.may_be_empty or self.fills_up

            def step(inputs: Any, count: Any, total: Any) -> Any:
                def replica(mine: Any, examples: Any) -> Any:
                    cut = Cut(self.group.replicas, examples, total, may_be_empty)
                    return body(cut, *source.decode(*mine))

                results = self.group.strategy.experimental_local_results(self._on_replicas(replica, inputs, count))
                return keras.tree.map_structure(lambda *parts: tf.add_n(list(parts)), *results)

            def several(inputs: Any, rows: Any, counts: Any, totals: Any) -> Any:
                def one(number: Any, _: Any) -> Any:
                    mine = keras.tree.map_structure(lambda part: part[number, : rows[number]], inputs)
                    return number + 1, step(mine, counts[number], totals[number])

                begin = (tf.constant(0), tf.constant(0.0))
                return tf.while_loop(lambda number, _: number < tf.size(counts), one, begin, parallel_iterations=1)[1]

            # One trace with an open batch dimension: graphs for other shapes differ in their last bits, and which of
            # them a restarted run traces first depends on the step at which it resumes.
            number, numbers = tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)
            spec = source.input_spec()
            if self.steps_per_call == 1:
                signature = [spec, number, number]
            else:
                spec = keras.tree.map_structure(lambda part: tf.TensorSpec([None, *part.shape], part.dtype), spec)
                signature = [spec, numbers, numbers, numbers]
            function: Callable[..., Any] = step if self.steps_per_call == 1 else several
            self._functions[key] = tf.function(function, autograph=False, input_signature=signature)
        return self._functions[key]

    def _on_replicas(self, replica: Callable[..., Any], inputs: Any, count: Any) -> Any:
        """Run `replica` of each replica's rows and how many of them count."""
        return self.group.strategy.run(lambda: replica(*self._share_of_replica(inputs, count)))

    def _share_of_replica(self, inputs: Any, count: Any) -> tuple[Any, Any]:
        """This replica's rows of the task's `count`, at least one, and how many of them count."""
        if self.group.local == 1:
            return inputs, count
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group - self.group.first_replica
        low = replica * count // self.group.local
        high = (replica + 1) * count // self.group.local
        begin = tf.minimum(low, tf.maximum(count, 1) - 1)
        end = tf.maximum(high, begin + 1)
        return keras.tree.map_structure(lambda part: part[begin:end], inputs), high - low


def epoch_logs(metrics: dict[str, Any], last: dict[str, Any] | None) -> dict[str, Any]:
    """Logs of training or evaluation: `metrics`, or as in Keras what the model's own step gave last, if it gave others.

    A metric that this step never updates reads zero: what was given under its name is something else.
    """
    if last is None:
        return metrics
    return {name: metrics[name] or last[name] for name in metrics} if last.keys() == metrics.keys() else last


def _alike(batches: Sequence[Batch]) -> bool:
    """Whether the parts of all batches differ in their rows at most, and not in width as `padded_batch` makes them."""
    shapes = [[part.shape[1:] for part in keras.tree.flatten(batch.inputs)] for batch in batches]
    return all(shape == shapes[0] for shape in shapes)


def _stacked(batches: Sequence[Any]) -> tuple[Any, list[int]]:
    """The parts of several batches, each stacked into one tensor (shorter ones filled up), and each batch's rows."""
    rows = [int(keras.tree.flatten(batch)[0].shape[0]) for batch in batches]
    longest = np.arange(max(rows))

    def stack(*parts: Any) -> Any:
        filled = (tf.gather(part, np.minimum(longest, n - 1)) for part, n in zip(parts, rows, strict=True))
        return tf.stack(list(filled))

    return keras.tree.map_structure(stack, *batches), rows
