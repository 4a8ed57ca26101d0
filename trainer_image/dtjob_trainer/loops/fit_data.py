"""The data that `fit` was given, as its sources, held against the strategy and the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from dtjob_trainer.data import sources
from dtjob_trainer.data.batches import Place, Source, Wanted
from dtjob_trainer.data.class_weights import ClassWeighted
from dtjob_trainer.data.dataset import rows_of_each_batch
from dtjob_trainer.errors import FitError
from dtjob_trainer.loops.epochs import Epochs, WhenOut
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group


class FitData:
    """Makes the sources of one call of `fit`. All raise FitError or DataError for data that cannot be right."""

    def __init__(
        self, here: Runtime, group: Group, trained: TrainedModel, *, batch_size: int | None, seed: int
    ) -> None:
        self._here, self._traits, self._trained = here, here.traits, trained
        self._replicas, self._batch_size, self._seed = group.replicas, batch_size, seed
        self._equal_shares = trained.scales_itself and group.replicas > 1
        """A train_step that knows of replicas takes means of its replica's examples, whose mean is the global batch's
        only where all have equally many."""
        self._place = Place(group.index, group.tasks, group.replicas, remote=self._traits.remote_steps)

    def training(
        self,
        x: Any,
        y: Any,
        sample_weight: Any,
        class_weight: Mapping[int, float] | None,
        *,
        steps: int | None,
        shuffle: bool,
    ) -> Source:
        """What to train on; all but the data as `fit` has it."""
        whole = self._traits.tpu or self._equal_shares
        wanted = Wanted(batch_size=self._batch_size, steps=steps, seed=self._seed, shuffle=shuffle, drop_last=whole)
        source = sources.make(x, y, sample_weight, wanted, self._place)
        self._tell_left_out(source)
        if self._equal_shares:
            size = self._batch_size or sources.DEFAULT_BATCH_SIZE
            if sources.is_batched(x):
                self._check_shares(rows_of_each_batch(x) if isinstance(x, tf.data.Dataset) else None)
            else:
                self._check_shares(size)
        return source if class_weight is None else ClassWeighted(source, class_weight)

    def epochs(self, source: Source, group: Group, x: Any, *, steps: int | None, epochs: int) -> Epochs:
        """The epochs of training on `source`, which was made of `x`."""
        when_out: WhenOut = "end the epoch"
        if self._trained.package == "tf_keras" and steps is not None and not callable(x):
            if not sources.is_batched(x):
                when_out = "go on"
            elif steps != source.steps:
                when_out = "stop"

        def warn(message: str) -> None:
            self._here.log(message, level="warning")

        return Epochs(source, group, steps=steps, epochs=epochs, when_out=when_out, tell=warn)

    def validation(self, data: Any, steps: int | None) -> Source:
        """What to validate on: `data`, or its first `steps` batches."""
        parts = tuple(data) if isinstance(data, tuple | list) else (data, None)
        if len(parts) not in (2, 3):
            raise FitError(
                f"validation_data must be (x, y), (x, y, weights), a Dataset or a data function, not {len(parts)} parts"
            )
        x, y, weights = (*parts, None)[:3]
        wanted = Wanted(
            "validation_data",
            "validation_steps",
            # of what brings its own batches, that is the size of training's batches alone
            batch_size=None if sources.is_batched(x) else self._batch_size,
            any_batch_size=True,
            alike=True,
            at_most=steps,
            seed=self._seed,
        )
        source = sources.make(x, y, weights, wanted, self._place)
        if steps is not None and source.steps is not None and source.steps < steps:
            batches = f"validation_data has {source.steps} batches"
            self._here.log(f"validation_steps={steps}, but {batches}: all are taken", level="warning")
        return source

    def _tell_left_out(self, source: Source) -> None:
        if source.sizes is None or not source.sizes.left_out:
            return
        left, n = source.sizes.left_out, source.sizes.n
        why = "on a TPU" if self._traits.tpu else "of a model with its own train_step"
        self._here.log(
            f"{left} of {n} examples are left out of each epoch: every replica {why} takes equally many, and the last "
            "batch is not full"
        )

    def _check_shares(self, rows: int | None) -> None:
        """See that replicas get equal shares of `rows` examples a batch (None: unknown how many)."""
        if rows is None or rows < self._replicas:
            raise FitError(
                f"x: of a model with its own train_step each of the {self._replicas} replicas takes equally many "
                f"examples; batch the Dataset with drop_remainder=True, in a size that {self._replicas} divides"
            )
        if rows % self._replicas:
            self._here.log(
                f"batches of {rows} make unequal shares for {self._replicas} replicas, which the model's own "
                f"train_step weighs alike; choose a size that {self._replicas} divides",
                level="warning",
            )
