# SPDX-License-Identifier: Apache-2.0
"""Steps on a TPU: the host gives each replica rows of its own, all as many; XLA takes nothing else."""

from collections.abc import Callable, Collection
from typing import Any

import keras
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

    on_tpu = True

    def __init__(self, trained: TrainedModel, group: Group, watched: Collection[Phase] = ()) -> None:
        super().__init__(trained, group, watched)
        self.steps_per_call = 1  # several in one call have shapes that depend on data
        self._of_uneven: _Whole | None = None

    def streams(self, source: Source) -> bool:
        """No: the host cuts every batch."""
        return False

    def _run(self, phase: Phase, source: Source, work: Work) -> tuple[Any, int]:
        """Of evaluation, a batch that does not divide by the replicas is computed whole by each of them.

        Raises DataError for such a batch of training, as each replica would need the memory for all its rows.
        """
        assert not isinstance(work, Portion)
        result, replicas = None, self.group.replicas
        for batch in work:
            inputs = tuple(part for part in batch.inputs if part is not None)
            run = super()._run
            if batch.count % replicas and phase == "train":
                raise DataError(
                    f"a batch size of {batch.count} does not divide by the {replicas} replicas of the TPU; choose "
                    "another batch_size, or batch the Dataset with drop_remainder=True"
                )
            if batch.count % replicas:
                self._of_uneven = self._of_uneven or _Whole(self.trained, self.group, self.watched)
                run = self._of_uneven._run
            result, _ = run(phase, source, [Batch(inputs, batch.count, batch.total)])
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

            return keras.tree.map_structure(rows_of, inputs), count // replicas

        shares = strategy.experimental_distribute_values_from_function(share)
        return strategy.run(replica, args=shares)


class _Whole(SynchronousEngine):
    """Runs steps in which each replica computes a whole batch, and the first one counts it."""

    on_tpu = True
    each_has_all = True

    def streams(self, source: Source) -> bool:
        return False

    def _on_replicas(self, replica: Callable[..., Any], inputs: Any, count: Any, whole: tuple[bool, ...]) -> Any:
        strategy = self.group.strategy

        def all_rows(context: Any) -> Any:
            return inputs, count if context.replica_id_in_sync_group == 0 else tf.zeros_like(count)

        return strategy.run(replica, args=strategy.experimental_distribute_values_from_function(all_rows))
