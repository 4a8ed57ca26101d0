# SPDX-License-Identifier: Apache-2.0
"""The data that `fit` was given, as its sources, held against the strategy and the model."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from dtjob_trainer.data import sources
from dtjob_trainer.data.batches import Place, Source, Wanted
from dtjob_trainer.data.dataset import rows_of_each_batch
from dtjob_trainer.data.python_batches import SequenceAsPyDataset, is_sequence
from dtjob_trainer.errors import FitError
from dtjob_trainer.loops.fit_arguments import LeftAside, Numbers, Queue
from dtjob_trainer.models import own_fit
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.passes.epochs import Epochs, WhenOut
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.service.served import source_of as served_source
from dtjob_trainer.strategies.collective import Group


@dataclass
class FitData:
    """Makes the sources of one call of `fit`. All raise FitError or DataError for data that cannot be right."""

    here: Runtime
    group: Group
    trained: TrainedModel
    numbers: Numbers
    queue: Queue
    """How to read a Sequence of tf_keras."""
    aside: LeftAside
    """Gets what has no effect."""
    seed: int

    def __post_init__(self) -> None:
        self._each_anew = False
        """Whether each epoch takes so many first batches of the data, as tf_keras does with a Sequence."""
        self._equal_shares = self.trained.scales_itself and self.group.replicas > 1
        """A train_step that knows of replicas takes means of its replica's examples, whose mean is the global batch's
        only where all have equally many."""
        tasks, replicas = self.group.tasks, self.group.replicas
        self._place = Place(self.group.index, tasks, replicas, remote=self.here.traits.remote_steps)

    def held_out(
        self, x: Any, y: Any, sample_weight: Any, fraction: float, validation_data: Any
    ) -> tuple[tuple[Any, Any, Any], Any]:
        """(x, y, sample_weight) and validation_data: the last `fraction` of the examples where it was not given."""
        sources.check_split(fraction)
        if not fraction or validation_data is not None:
            if fraction:
                self.aside.add("validation_split", "there is validation_data")
            return (x, y, sample_weight), validation_data
        return sources.split(x, y, self._weights("sample_weight", x, y, sample_weight), fraction)

    def training(
        self, x: Any, y: Any, sample_weight: Any, class_weight: Mapping[int, float] | None, *, shuffle: bool | str
    ) -> Source:
        """What to train on, as `fit` has it."""
        steps, x = self.numbers.steps_per_epoch, self._readable(x)
        if isinstance(x, SequenceAsPyDataset) and self.trained.package == "tf_keras" and steps is not None:
            self._each_anew = steps <= len(x)
        size, batched = self._batch_size("batch_size", x), sources.is_batched(x)
        sample_weight = self._weights("sample_weight", x, y, sample_weight)
        wanted = Wanted(
            batch_size=size,
            steps=None if self._each_anew else steps,
            at_most=steps if self._each_anew else None,
            seed=self.seed,
            shuffle=bool(shuffle) and (batched or shuffle != "batch"),
            # Keras 3 changes the order within each batch alone then, which no result depends on
            shuffle_batches=shuffle == "batch" and self.trained.package == "tf_keras",
            drop_last=self.here.traits.tpu or self._equal_shares,
        )
        source = self._source(x, y, sample_weight, wanted)
        if source.sizes is not None and (left := source.sizes.left_out):
            why = "on a TPU" if self.here.traits.tpu else "of a model with its own train_step"
            self.here.log(
                f"{left} of {source.sizes.n} examples are left out of each epoch: every replica {why} takes equally "
                "many, and the last batch is not full"
            )
        if self._equal_shares:
            if batched:
                self._check_shares(rows_of_each_batch(x) if isinstance(x, tf.data.Dataset) else None)
            else:
                self._check_shares(size or sources.DEFAULT_BATCH_SIZE)
        if class_weight is not None:
            sources.weigh(source, class_weight)
        return source

    def epochs(self, source: Source, x: Any) -> Epochs:
        """The epochs of training on `source`, which was made of `x`."""
        when_out: WhenOut = "end the epoch"
        steps = None if self._each_anew else self.numbers.steps_per_epoch
        if self.trained.package == "tf_keras" and steps is not None and not callable(x):
            if not sources.is_batched(x) and not is_sequence(x):
                when_out = "go on"
            elif steps != source.steps:
                when_out = "stop"
        first, epochs, tell = self.numbers.initial_epoch, self.numbers.epochs, functools.cache(self.here.warn)
        return Epochs(source, self.group, steps=steps, epochs=epochs, when_out=when_out, tell=tell, first=first)

    def validation(self, data: Any) -> Source:
        """What to validate on: `data`, or its first `validation_steps` batches; of a model with an `evaluate()` of its
        own, what that makes of it."""
        size, steps = self.numbers.validation_batch_size or self.numbers.batch_size, self.numbers.validation_steps
        data = own_fit.given_to_evaluate(self.trained.model, data, batch_size=size, steps=steps)
        parts = tuple(data) if isinstance(data, tuple | list) else (data,)
        if len(parts) not in (1, 2, 3):
            raise FitError(
                "validation_data must be x, (x, y), (x, y, weights), a Dataset or a data function, not "
                f"{len(parts)} parts"
            )
        x, y, weights = (*parts, None, None)[:3]
        x = self._readable(x)
        weights = self._weights("the weights of validation_data", x, y, weights)
        # of what brings its own batches, batch_size is the size of training's batches alone
        size = self._batch_size("validation_batch_size", x) or (None if sources.is_batched(x) else size)
        source = self._evaluated(x, y, weights, "validation_data", "validation_steps", size)
        if steps is not None and source.steps is not None and source.steps < steps:
            batches = f"validation_data has {source.steps} batches"
            self.here.warn(f"validation_steps={steps}, but {batches}: all are taken")
        return source

    def evaluation(self, x: Any, y: Any, sample_weight: Any) -> Source:
        """What to evaluate on: `x`, or its first batches, as many as `validation_steps` says."""
        x = self._readable(x)
        weights = self._weights("sample_weight", x, y, sample_weight)
        return self._evaluated(x, y, weights, "x", "steps", self._batch_size("batch_size", x))

    def _evaluated(self, x: Any, y: Any, weights: Any, argument: str, steps_argument: str, size: int | None) -> Source:
        steps, seed = self.numbers.validation_steps, self.seed
        wanted = Wanted(argument, steps_argument, size, any_batch_size=True, alike=True, at_most=steps, seed=seed)
        return self._source(x, y, weights, wanted)

    def _source(self, x: Any, y: Any, weights: Any, wanted: Wanted) -> Source:
        """The source of what was given. Tells what there is to say of how it is read."""
        alone = y is None and weights is None  # a Dataset with one of these is refused
        served, said = served_source(x, wanted, self._place) if alone else (None, "")
        source = served or sources.make(x, y, weights, wanted, self._place)
        if said:
            (self.here.log if served else self.here.warn)(f"{wanted.argument}: {said}")
        if source.remark:
            self.here.log(source.remark)
        if source.batch is not None and source.batch < self._place.replicas and not wanted.any_batch_size:
            self.here.log(
                f"batches have {source.batch} of the {self._place.replicas} examples that would give each replica one: "
                "the other replicas rest at each step"
            )
        return source

    def _readable(self, x: Any) -> Any:
        """`x`, where it is a Sequence of tf_keras as a PyDataset."""
        return SequenceAsPyDataset(x, **vars(self.queue)) if is_sequence(x) else x

    def _weights(self, argument: str, x: Any, y: Any, weights: Any) -> Any:
        """`weights`, unless there are no targets whose losses they could weigh."""
        if weights is None or y is not None or sources.is_batched(x) or callable(x):
            return weights
        self.aside.add(argument, "it would weigh the losses of y, and there is none")
        return None

    def _batch_size(self, argument: str, x: Any) -> int | None:
        """The number that was given as `argument`, unless `x` brings its own batches."""
        size: int | None = getattr(self.numbers, argument)
        if size is not None and sources.is_batched(x):
            self.aside.add(argument, f"a {sources.name_of(x)} brings its own batches")
            return None
        return size

    def _check_shares(self, rows: int | None) -> None:
        """See that replicas get equal shares of `rows` examples a batch (None: unknown how many)."""
        if rows is None or rows < self.group.replicas:
            raise FitError(
                f"x: of a model with its own train_step each of the {self.group.replicas} replicas takes equally many "
                f"examples; batch the Dataset with drop_remainder=True, in a size that {self.group.replicas} divides"
            )
        if rows % self.group.replicas:
            self.here.warn(
                f"batches of {rows} make unequal shares for {self.group.replicas} replicas, which the model's own "
                f"train_step weighs alike; choose a size that {self.group.replicas} divides"
            )
