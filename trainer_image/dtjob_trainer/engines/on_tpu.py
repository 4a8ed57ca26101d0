# SPDX-License-Identifier: Apache-2.0
"""Steps on a TPU: the host gives each replica rows of its own, all as many; XLA takes nothing else."""

from collections.abc import Callable, Collection
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.engines.engine import Phase, Work
from dtjob_trainer.engines.synchronous import SynchronousEngine
from dtjob_trainer.errors import DataError
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.strategies.collective import Group


class TpuEngine(SynchronousEngine):
    """Runs steps of a built model on a TPU. Its sources deliver the examples themselves, not row numbers."""

    fills_up = True

    def __init__(self, trained: TrainedModel, group: Group, watched: Collection[Phase] = ()) -> None:
        super().__init__(trained, group, watched)
        self.steps_per_call = 1  # several in one call have shapes that depend on data

    def streams(self, source: Source) -> bool:
        """No: the host cuts every batch."""
        return False

    def _run(self, phase: Phase, source: Source, work: Work) -> tuple[Any, int]:
        """Of evaluation, the examples that do not divide by the replicas are in a second call.

        Raises DataError for a batch of training that does not divide by the replicas: fill would train, too.
        """
        assert not isinstance(work, Portion)
        result, replicas = None, self.group.replicas
        for batch in work:
            inputs = tuple(part for part in batch.inputs if part is not None)
            even = batch.count // replicas * replicas
            if phase == "train" and batch.count > even:
                raise DataError(
                    f"a batch of {batch.count} examples does not divide by the {replicas} replicas of the TPU; choose "
                    "another batch_size, or batch the Dataset with drop_remainder=True"
                )
            calls = []
            if even:
                first = keras.tree.map_structure(lambda part, end=even: part[:end], inputs)
                calls.append(Batch(first, even, batch.total))
            if batch.count > even:
                rows = np.minimum(np.arange(even, even + replicas), batch.count - 1)  # the last is padding
                rest = keras.tree.map_structure(lambda part, rows=rows: tf.gather(part, rows), inputs)
                calls.append(Batch(rest, batch.count - even, batch.total))
            parts = [super(TpuEngine, self)._run(phase, source, [call])[0] for call in calls]
            result = keras.tree.map_structure(lambda *each: tf.add_n(list(each)), *parts)
        return result, len(work)

    def _on_replicas(self, replica: Callable[..., Any], inputs: Any, count: Any, whole: tuple[bool, ...]) -> Any:
        if whole:
            raise DataError("x: on a TPU all parts of a batch must have its number of rows; make the others constants")
        strategy, replicas = self.group.strategy, self.group.replicas

        def share(context: Any) -> Any:
            number = context.replica_id_in_sync_group

            def rows_of(part: Any) -> Any:
                size = tf.shape(part)[0] // replicas
                return part[number * size : (number + 1) * size]

            size = tf.shape(keras.tree.flatten(inputs)[0])[0] // replicas
            examples = tf.clip_by_value(count - number * size, 0, size)
            return keras.tree.map_structure(rows_of, inputs), examples

        shares = strategy.experimental_distribute_values_from_function(share)
        return strategy.run(replica, args=shares)
