"""What the training loop asks of a compiled model, whichever Keras it is of: one subclass for each package."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.models import own_step
from dtjob_trainer.models.losses import Cut
from dtjob_trainer.models.variables import Array, State
from dtjob_trainer.strategies.collective import Group


class TrainedModel(ABC):
    """A compiled model of one package, as engines, checkpoints and callbacks use it."""

    package: str
    """The package's name; classes of its own are in modules below it."""

    def __init__(self, model: Any, traits: Traits) -> None:
        """`traits`: what the strategy is like under which the model is trained."""
        self.model = model
        self._traits = traits

    @property
    def own_step(self) -> bool:
        """Whether the model has a train_step of its own."""
        return not type(self.model).train_step.__module__.startswith(f"{self.package}.")

    @property
    def own_test(self) -> bool:
        """Whether the model has a test_step of its own."""
        return not type(self.model).test_step.__module__.startswith(f"{self.package}.")

    @property
    def exact(self) -> bool:
        """Whether `state` is all that a step depends on. Known once the model is built."""
        return True

    @property
    @abstractmethod
    def optimizers(self) -> list[Any]:
        """Every optimizer of the model: the compiled one and those that a subclass keeps as attributes."""

    @property
    @abstractmethod
    def callbacks(self) -> Any:
        """The package's module of callbacks."""

    @property
    @abstractmethod
    def steps_per_call(self) -> int:
        """How many steps the model was compiled to run in one call (`steps_per_execution`)."""

    def remarks(self) -> Iterator[str]:
        """In what the model, which is not built yet, is trained otherwise than by its package's own fit, and why."""
        yield from ()

    @abstractmethod
    def check(self) -> None:
        """Raise FitError for a model that cannot be trained as it is."""

    def check_eagerly(self) -> None:
        """Raise FitError for a model that was compiled to run as Python, which no replica does."""
        if getattr(self.model, "_run_eagerly", None):
            raise FitError(
                "model was compiled with run_eagerly=True, but steps run as graphs, where tensors have no numpy(); "
                "leave it out, and write losses and metrics in operations of Keras or TensorFlow"
            )

    @abstractmethod
    def build(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make every variable of model, metrics and optimizer, from shapes alone; x, y and weights are a batch's specs.

        Variables that came to be while a step is traced would be in no checkpoint (and fail under Mirrored).
        """

    @abstractmethod
    def build_further(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make what `build` leaves over of a model that is to be trained: variables that its `train_step` would make.

        Raises FitError for what no checkpoint could have.
        """

    def train_replica(self, cut: Cut, x: Any, y: Any, sample_weight: Any) -> Any:
        """One replica's training step; its share (scalar) of the loss of the global batch.

        As shares sum up to what one device gets from the whole batch, so do their gradients, however unevenly it is
        cut. Of a model with its own `train_step`: this replica's part of the mean of all that gives, by name.
        """
        if not self.own_step:
            return self._train(cut, x, y, sample_weight)
        # equal shares, as Keras scales losses itself
        logs = own_step.flat(self._own_train(x, y, sample_weight))
        return {name: tf.reduce_mean(tf.cast(value, tf.float32)) / cut.replicas for name, value in logs.items()}

    def _own_train(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """The model's own `train_step`, given what Keras gives it."""
        return self.model.train_step(self.pack(x, y, sample_weight))

    @abstractmethod
    def pack(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """A batch as the package gives it to steps: x alone, (x, y) or (x, y, sample_weight)."""

    def check_reported(self, logs: Any) -> None:
        """Raise FitError where `logs`, which an own `compute_metrics` returned, has what no metric of the model gives.

        Each replica counts its own rows alone; the model's metrics are read once those of all are put together.
        """
        names, known = own_step.flat(logs).keys(), own_step.flat(self.model.get_metrics_result()).keys()
        if names and names != known:
            which = ", ".join(sorted(names ^ known))
            raise FitError(
                f"model: its compute_metrics() and get_metrics_result() differ in {which}; compute in an overridden "
                "get_metrics_result() what is to be reported, of the states of metrics"
            )

    @abstractmethod
    def _train(self, cut: Cut, x: Any, y: Any, sample_weight: Any) -> Any:
        """`train_replica` of a model without its own `train_step`."""

    def evaluate_replica(self, cut: Cut, x: Any, y: Any, sample_weight: Any) -> Any:
        """One replica's evaluation step: updates loss and metrics; its share of the loss as of `train_replica`.

        Of a model with its own `test_step`, which updates metrics as it likes: its part of the mean of what that gives.
        """
        if not self.own_test:
            return self._evaluate(cut, x, y, sample_weight)
        apart = cut.may_be_empty and not self._traits.central_storage
        with contextlib.nullcontext() if apart or not cut.may_be_empty else self._counting(cut):
            test = functools.partial(self.model.test_step, self.pack(x, y, sample_weight))
            return own_step.evaluate_replica(test, cut, only_where_counted=apart)

    @abstractmethod
    def _counting(self, cut: Cut) -> AbstractContextManager[Any]:
        """While this lasts, metrics are updated as the strategy needs it, and not where a row only stands in."""

    @abstractmethod
    def _evaluate(self, cut: Cut, x: Any, y: Any, sample_weight: Any) -> Any:
        """`evaluate_replica` of a model without its own `test_step`."""

    @abstractmethod
    def read_metrics(self, group: Group) -> dict[str, Any]:
        """Loss and metrics out of every replica's state; the same floats (or lists) in every task. Collective."""

    @abstractmethod
    def of_global_batch(self) -> AbstractContextManager[Any]:
        """While this lasts, losses of the package act on the global batch, and optimizers where it is one step's."""

    @abstractmethod
    def state(self, group: Group) -> State:
        """All that training changes of the built model."""

    def averaged(self, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        """A checkpoint's `arrays` with the averages that the optimizer keeps in place of weights; of a built model."""
        return arrays

    @abstractmethod
    def load(self, arrays: Mapping[str, Array]) -> None:
        """Give the model, outside any strategy, the weights of a checkpoint. Raises StateError for another model's."""

    @abstractmethod
    def scale_learning_rate(self, factor: int) -> None:
        """Multiply the learning rate, or all of a schedule's. Raises ValueError for a schedule of the user's own."""


def number(value: Any) -> Any:
    """A metric's result as a float, or as a list of them where it has several."""
    return np.asarray(value, np.float64).tolist()
