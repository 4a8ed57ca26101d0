# SPDX-License-Identifier: Apache-2.0
"""What the training loop asks of a compiled model, whichever Keras it is of: one subclass for each package."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError, StateError
from dtjob_trainer.frameworks import keras3
from dtjob_trainer.models import inlined, metric_updates, optimizers, own_step, pieces, recurrent, returned
from dtjob_trainer.models.results import Results
from dtjob_trainer.models.returned import Returned
from dtjob_trainer.models.values import Values
from dtjob_trainer.models.variables import State
from dtjob_trainer.placement import hooks, tracker
from dtjob_trainer.placement.cuts import Cut, setting
from dtjob_trainer.strategies.collective import Group

_GRADIENTS = {
    True: "added up as they are, as of a step that is written for several replicas",
    False: "those of one device, as of a step that is written for one",
}


class TrainedModel(ABC):
    """A compiled model of one package, as engines, checkpoints and callbacks use it."""

    package: str
    """The package's name; classes of its own are in modules below it."""

    def __init__(self, model: Any, traits: Traits, scaled_step: bool | None = None) -> None:
        """`traits`: what the strategy is like under which the model is trained. `scaled_step`: as `fit` takes it."""
        self.model = model
        self._traits = traits
        self.scaled_step = scaled_step
        self.returned = {"train": Returned(), "evaluate": Returned()}
        """What steps of the model's own return, by kind."""
        self._updates = metric_updates.Updates(self.package, shared=traits.shared_variables)
        self._read = Results(self.package)

    @property
    def own_step(self) -> bool:
        """Whether the model has a train_step of its own."""
        return not type(self.model).train_step.__module__.startswith(f"{self.package}.")

    @property
    def own_test(self) -> bool:
        """Whether the model has a test_step of its own."""
        return not type(self.model).test_step.__module__.startswith(f"{self.package}.")

    @property
    def needs_targets(self) -> bool:
        """Whether the package's own step compares outputs with targets, by a loss that was given to `compile`."""
        return not self.own_step and getattr(self.model, "loss", None) is not None

    @property
    def jit_compile(self) -> bool:
        """Whether the model was compiled to run its steps by XLA, or where that was left to Keras, whether it would."""
        return bool(self.model.jit_compile)

    @property
    def by_xla(self) -> bool:
        """Whether its steps are to be compiled by XLA here."""
        return self.jit_compile and self._traits.compiles

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
        if keras3.runs_eagerly(self.model):
            yield (
                "run_eagerly=True is left aside: steps run as graphs, where tensors have no numpy(); write losses and "
                "metrics in operations of Keras or TensorFlow"
            )

    @abstractmethod
    def check(self) -> None:
        """Raise FitError for a model that cannot be trained as it is."""

    def check_stateful(self) -> None:
        """Raise FitError for recurrent layers whose states several replicas or workers would need parts of."""
        why = recurrent.why_not(self.model) if self._in_parts else None
        if why is not None:
            raise FitError(why)

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

        Shares sum up to what one device gets from the whole batch. Of a model with its own `train_step`: what this
        replica leaves of all that gives (`Returned`).
        """
        if not self.scales_itself:
            x, y, sample_weight = tracker.opened(cut, (x, y, sample_weight))
        with self._tracing(cut, (x, y, sample_weight), apart=self.scales_itself):
            if self.own_step:
                return self._own("train", lambda: self.model.train_step(self.pack(x, y, sample_weight)), cut)
            return self._train(cut, x, y, sample_weight)

    @contextlib.contextmanager
    def _tracing(self, cut: Cut, batch: Any, *, apart: bool = False) -> Iterator[None]:
        """While this lasts, a replica's step on `batch` is traced; `apart`: as a step that knows of replicas itself."""
        if cut.replicas > 1:
            hooks.install()
        with (
            setting(metric_updates.counting, cut),
            inlined.functions() if cut.replicas > 1 else contextlib.nullcontext(),
            contextlib.nullcontext() if apart else tracker.tracing(cut, batch),
        ):
            yield

    @property
    def scales_itself(self) -> bool:
        """Whether the model's own train_step makes its gradients add up over replicas by itself."""
        if not self.own_step or self.scaled_step is not None:
            return self.own_step and bool(self.scaled_step)
        return own_step.scaled_at(self.model) is not None

    def say_who_scales(self) -> str:
        """In words, whether gradients of the model's own `train_step` are added up as they are, and why."""
        if self.scaled_step is not None:
            return f"train_step: scaled_step={self.scaled_step}, so gradients are " + _GRADIENTS[self.scaled_step]
        line = own_step.scaled_at(self.model)
        why = "its class names no replicas" if line is None else f"of {line}"
        return (
            f"train_step: gradients are {_GRADIENTS[line is not None]}, because {why}; if that is wrong, give "
            f"dt.fit(…, scaled_step={line is None})"
        )

    @property
    def _in_parts(self) -> bool:
        """Whether several replicas or workers count in the model's metrics."""
        return self._traits.shared_variables or tf.distribute.get_strategy().num_replicas_in_sync > 1

    def _own(self, kind: Literal["train", "evaluate"], step: Callable[[], Any], cut: Cut) -> Any:
        """Run a step of the model's own."""
        return self.returned[kind].of_replica(step, cut)

    @abstractmethod
    def pack(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """A batch as the package gives it to steps: x alone, (x, y) or (x, y, sample_weight)."""

    def check_reported(self, logs: Any) -> None:
        """Raise FitError where `logs`, which an own `compute_metrics` returned, has what no metric of the model gives.

        Each replica counts its own rows alone; the model's metrics are read once those of all are put together.
        """
        names, known = returned.flat(logs).keys(), returned.flat(self.model.get_metrics_result()).keys()
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

        Of a model with its own `test_step`: as of `train_replica`.
        """
        x, y, sample_weight = tracker.opened(cut, (x, y, sample_weight))
        with self._tracing(cut, (x, y, sample_weight)):
            if self.own_test:
                data = self.pack(x, y, sample_weight)
                return self._own("evaluate", lambda: self.model.test_step(data), cut)
            return self._evaluate(cut, x, y, sample_weight)

    @abstractmethod
    def _evaluate(self, cut: Cut, x: Any, y: Any, sample_weight: Any) -> Any:
        """`evaluate_replica` of a model without its own `test_step`."""

    def read_metrics(self, group: Group, *, often: bool = False) -> dict[str, Any]:
        """Loss and metrics out of every replica's state; the same floats (or lists) in every task. Collective.

        - often: whether callbacks see each step, so that it pays to trace what is read. No bit depends on it.
        """
        with self._states(group, often):
            return self._results()

    def read_returned(
        self, kind: Literal["train", "evaluate"], left: Mapping[str, Any], group: Group, *, often: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The metrics as of `read_metrics`, and what the last own step of this `kind` gave, which has `left` that.

        Collective.
        """
        values = self.returned[kind].gathered(left, group)
        with self._states(group, often):
            return self._results(), self.returned[kind].logs(values)

    def _states(self, group: Group, often: bool) -> AbstractContextManager[Any]:
        """While this lasts, the metrics' results are those of all replicas' states. Collective."""
        if often and self._traits.compiles:  # one replica
            return self._read.known(self._metrics())
        return self._states_of_all(group, often)

    def _results(self) -> dict[str, Any]:
        """The metrics as they are now. One may have several results, in a dict of its own, which Keras takes apart."""
        return {name: number(value) for name, value in returned.flat(self.model.get_metrics_result()).items()}

    @abstractmethod
    def in_order(self, logs: Mapping[str, Any]) -> Any:
        """What `Model.evaluate` returns of these logs: a number, or a list in the order of the model's metrics."""

    @abstractmethod
    def _states_of_all(self, group: Group, often: bool) -> AbstractContextManager[Any]:
        """The same, of the states read one by one."""

    @abstractmethod
    def _metrics(self) -> list[Any]:
        """The model's metrics, each by itself."""

    @abstractmethod
    def of_global_batch(self) -> AbstractContextManager[Any]:
        """While this lasts, losses of the package act on the global batch, and optimizers where it is one step's."""

    @abstractmethod
    def state(self, group: Group) -> State:
        """All that training changes of the built model."""

    def averages(self) -> Mapping[str, str]:
        """By the name of a weight in a checkpoint, that of its average that the optimizer keeps; of a built model."""
        return {}

    def load(self, values: Values, instead: Mapping[str, str]) -> None:
        """Give the model, outside any strategy, the weights of a checkpoint. Raises StateError for another model's.

        - instead: by the name of a weight, the name of what it gets in its place.
        """
        weights = {instead.get(name, name): variable for name, variable in self._all_weights().items()}
        for name, variable in weights.items():
            if values.kinds.get(name, (None,))[0] != tuple(variable.shape):
                raise StateError(f"the checkpoint is of another model: variable {name} does not fit")
        pieces.assign(values, {name: variable.value for name, variable in weights.items()})

    @abstractmethod
    def _all_weights(self) -> Mapping[str, Any]:
        """The model's variables by the names that they have in a checkpoint."""

    def scale_learning_rate(self, factor: int) -> None:
        """Multiply the learning rate, or all of a schedule's. Raises ValueError for a schedule of the user's own."""
        optimizers.scale_learning_rate(self.model.optimizer, factor)

    def scale_schedules(self, factor: float) -> None:
        """Multiply the rates of a schedule, which no checkpoint has; a rate that is one number stays."""
        optimizers.scale_schedules(self.model.optimizer, factor)


def number(value: Any) -> Any:
    """A metric's result as a float, or as a list of them where it has several."""
    return np.asarray(value, np.float64).tolist()
