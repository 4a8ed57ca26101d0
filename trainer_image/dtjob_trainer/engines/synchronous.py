"""One step of training or evaluation under a synchronous strategy, each traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.engines.engine import Engine, Kind
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.losses import Cut
from dtjob_trainer.strategies.collective import Group


class SynchronousEngine(Engine):
    """Runs steps of a built model on every replica of a synchronous strategy (or in one process)."""

    fills_up = False
    """Whether batches are filled up until they divide by the replicas, so that a replica's rows may all be fill."""

    def __init__(self, trained: TrainedModel, group: Group) -> None:
        super().__init__(trained, group)
        self.steps_per_call = trained.steps_per_call

    def train(self, source: Source, batches: Sequence[Batch]) -> None:
        """Train one step on each of `batches`, in one call."""
        self._trained = self._run("train", source, batches)

    def evaluate(self, source: Source, batches: Sequence[Batch]) -> None:
        """Update loss and metrics with batches of evaluation data, sharded as in `train`."""
        self._evaluated = self._run("evaluate", source, batches)

    def wait(self) -> None:
        """Nothing: whatever reads a result waits for it."""

    def done(self) -> bool:
        """True."""
        return True

    def _result(self, step: Any) -> Any:
        return step

    def _run(self, kind: Kind, source: Source, batches: Sequence[Batch]) -> Any:
        function, result = self._function(kind, source), None
        if self._one_by_one(source):
            for batch in batches:
                result = function(batch.inputs, tf.constant(batch.count), tf.constant(batch.total))
            return result
        for group in [batches] if _alike(batches) else [[batch] for batch in batches]:
            inputs, rows = _stacked([batch.inputs for batch in group])
            counts, totals = [batch.count for batch in group], [batch.total for batch in group]
            result = function(inputs, tf.constant(rows), tf.constant(counts), tf.constant(totals))
        return result

    def _make_function(self, body: Callable[..., Any], source: Source) -> Any:
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
        if self._one_by_one(source):
            return tf.function(step, autograph=False, input_signature=[spec, number, number])
        spec = keras.tree.map_structure(lambda part: tf.TensorSpec([None, *part.shape], part.dtype), spec)
        return tf.function(several, autograph=False, input_signature=[spec, numbers, numbers, numbers])

    def _one_by_one(self, source: Source) -> bool:
        """Whether each step is a call of its own: ragged and sparse batches cannot be stacked, and what a step of the
        model's own returns is not known before it is traced."""
        own = self._own_step or self._own_test
        return (
            self.steps_per_call == 1 or own or any(map(elements.is_composite, keras.tree.flatten(source.input_spec())))
        )

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
        return keras.tree.map_structure(lambda part: elements.rows_of(part, begin, end), inputs), high - low


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
