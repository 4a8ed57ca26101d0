# SPDX-License-Identifier: Apache-2.0
"""What the training loop asks of a compiled model, whichever Keras it is of: one subclass for each package."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError, StateError
from dtjob_trainer.frameworks import keras3
from dtjob_trainer.models import optimizers
from dtjob_trainer.models.kept_variables import State, as_keras3, is_local, named
from dtjob_trainer.models.metric_states import Results
from dtjob_trainer.models.values import Values, assign
from dtjob_trainer.placement import tracing, tracker
from dtjob_trainer.placement.shard import Shard, setting, traced
from dtjob_trainer.steps import inlined, metric_updates, padding, returned, scaling
from dtjob_trainer.steps.returned import Returned
from dtjob_trainer.strategies.collective import Group

OPTIMIZER = "optimizer-{}"
"""How names of optimizers' variables begin; the compiled one is the first."""
_GRADIENTS = {
    True: "added up as they are, as of a step that is written for several replicas",
    False: "those of one device, as of a step that is written for one",
}


class TrainedModel(ABC):
    """A compiled model of one package, as engines, checkpoints and callbacks use it."""

    package: str
    """The package's name; classes of its own are in modules below it."""
    api: Any
    """The package's public module."""
    private: Any
    """What `frameworks/` has of the package."""
    kinds: tuple[type, ...]
    """The classes of the package's optimizers."""

    def __init__(self, model: Any, traits: Traits, scaled_step: bool | None = None) -> None:
        """`traits`: what the strategy is like under which the model is trained. `scaled_step`: as `fit` takes it."""
        self.model, self._traits, self.scaled_step = model, traits, scaled_step
        self.returned = {"train": Returned(), "evaluate": Returned()}
        """What custom steps return, by kind."""
        self._updates = metric_updates.Updates(self.package, shared=traits.shared_variables)
        self._read = Results(self.package)

    @property
    def custom_train_step(self) -> bool:
        """Whether the model has a train_step of its own."""
        return not type(self.model).train_step.__module__.startswith(f"{self.package}.")

    @property
    def custom_test_step(self) -> bool:
        """Whether the model has a test_step of its own."""
        return not type(self.model).test_step.__module__.startswith(f"{self.package}.")

    @property
    def needs_targets(self) -> bool:
        """Whether the package's own step compares outputs with targets, by a loss that was given to `compile`."""
        return not self.custom_train_step and getattr(self.model, "loss", None) is not None

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
    def optimizers(self) -> list[Any]:
        """Every optimizer of the model: the compiled one and those that a subclass keeps as attributes."""
        return optimizers.of_model(self.model, self.kinds)

    @property
    def callbacks(self) -> Any:
        """The package's module of callbacks."""
        return self.api.callbacks

    @property
    def steps_per_call(self) -> int:
        """How many steps the model was compiled to run in one call (`steps_per_execution`)."""
        asked = self.model.steps_per_execution
        if isinstance(asked, tf.Variable):  # tf_keras's
            return int(asked.numpy())
        return asked if isinstance(asked, int) else 1

    def remarks(self) -> Iterator[str]:
        """In what the model, which is not built yet, is trained otherwise than by its package's own fit, and why."""
        asked = "run_eagerly=True" if keras3.runs_eagerly(self.model) else "tf.config.run_functions_eagerly(True)"
        if keras3.runs_eagerly(self.model) or tf.config.functions_run_eagerly():
            yield (
                f"{asked} is left aside: steps run as graphs, where tensors have no numpy(); write losses and "
                "metrics in operations of Keras or TensorFlow"
            )

    def check(self) -> None:
        """Raise FitError for a model that cannot be trained as it is.

        Several replicas or workers would need parts of the states of recurrent layers.
        """
        if not self.private.is_compiled(self.model):
            raise FitError("model is not compiled; call model.compile(optimizer, loss, metrics=…) before fit()")
        if self.model.optimizer is None and not self.custom_train_step:
            raise FitError("model was compiled without an optimizer; name one in model.compile()")
        name = next((layer.name for layer in keras3.layers_of(self.model) if _keeps_states(layer)), None)
        if name is not None and self._in_parts:
            raise FitError(
                f"model: layer {name} is stateful: its states belong to the rows of one whole batch, which several "
                "replicas or workers cut up; train it under Default or OneDevice, or without stateful=True"
            )
        self._check_optimizers()

    def _check_optimizers(self) -> None:
        for why in (why for each in self.optimizers for why in self._limits(each, self._traits)):
            raise FitError(f"optimizer: {why}")

    @staticmethod
    @abstractmethod
    def _limits(optimizer: Any, traits: Traits) -> Iterator[str]:
        """What of `optimizer` cannot be right under a strategy with these traits, and what to write instead."""

    def recurrent_states(self) -> list[Any]:
        """The variables that hold the states of stateful layers: each goes on in its row of the batch before.

        No layer tracks them.
        """
        found = [getattr(layer, "states", None) for layer in keras3.layers_of(self.model) if _keeps_states(layer)]
        # tf_keras has None for states that are not made yet
        return list({id(v): v for v in tf.nest.flatten(found) if v is not None}.values())

    @abstractmethod
    def build(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make every variable of model, metrics and optimizer, from shapes alone; x, y and weights are a batch's specs.

        Variables that came to be while a step is traced would be in no checkpoint (and fail under Mirrored).
        """

    def build_further(self, x: Any, y: Any, sample_weight: Any) -> None:  # noqa: B027
        """Make what `build` leaves over of a model that is to be trained: variables that its `train_step` would make.

        Raises FitError for what no checkpoint could have.
        """

    def train_replica(self, shard: Shard, x: Any, y: Any, sample_weight: Any) -> Any:
        """One replica's training step; its part (scalar) of the loss of the global batch.

        Parts sum up to what one device gets from the whole batch. Of a model with its own `train_step`: this replica's
        part of each value that the step returns, by name (`Returned`).
        """
        apart = self.scales_itself
        batch = (x, y, sample_weight) if apart else tracker.opened(shard, (x, y, sample_weight))
        statistics = [] if self._traits.shared_variables else padding.moving_statistics(self.model, shard)
        with padding.kept(shard, statistics), self._tracing(shard, batch, apart=apart):
            if self.custom_train_step:
                return self.returned["train"].of_replica(lambda: self.model.train_step(self.pack(*batch)), shard)
            return self._train(shard, *batch)

    def evaluate_replica(self, shard: Shard, x: Any, y: Any, sample_weight: Any) -> Any:
        """One replica's evaluation step, which updates the metrics; its part (scalar) of the loss of the global batch.

        Of a model with its own `test_step`: this replica's part of each value that the step returns, by name.
        """
        batch = tracker.opened(shard, (x, y, sample_weight))
        with self._tracing(shard, batch):
            if self.custom_test_step:
                return self.returned["evaluate"].of_replica(lambda: self.model.test_step(self.pack(*batch)), shard)
            x, y, sample_weight = batch
            y_pred = self._call(x, training=False)
            loss = self._loss(x, y, y_pred, sample_weight, training=False)
            return self._counted(shard, x, y, y_pred, sample_weight, loss)

    @contextlib.contextmanager
    def _tracing(self, shard: Shard, batch: Any, *, apart: bool = False) -> Iterator[None]:
        """While this lasts, a replica's step on `batch` is traced; `apart`: as a step that scales its gradients."""
        if shard.replicas > 1:
            tracing.install()
        with (
            setting(traced, shard),
            inlined.functions() if shard.replicas > 1 else contextlib.nullcontext(),
            contextlib.nullcontext() if apart else tracker.tracing(shard, batch),
        ):
            yield

    @property
    def scales_itself(self) -> bool:
        """Whether the model's own train_step makes its gradients add up over replicas by itself."""
        if not self.custom_train_step or self.scaled_step is not None:
            return self.custom_train_step and bool(self.scaled_step)
        return scaling.scaled_at(self.model) is not None

    def say_who_scales(self) -> str:
        """In words, whether gradients of the model's own `train_step` are added up as they are, and why."""
        if self.scaled_step is not None:
            return f"train_step: scaled_step={self.scaled_step}, so gradients are " + _GRADIENTS[self.scaled_step]
        line = scaling.scaled_at(self.model)
        why = "its class names no replicas" if line is None else f"of {line}"
        return (
            f"train_step: gradients are {_GRADIENTS[line is not None]}, because {why}; if that is wrong, give "
            f"dt.fit(…, scaled_step={line is None})"
        )

    @property
    def _in_parts(self) -> bool:
        """Whether several replicas or workers count in the model's metrics."""
        return self._traits.shared_variables or tf.distribute.get_strategy().num_replicas_in_sync > 1

    def pack(self, x: Any, y: Any, sample_weight: Any) -> Any:
        """A batch as the package gives it to steps: x alone, (x, y) or (x, y, sample_weight)."""
        return self.api.utils.pack_x_y_sample_weight(x, y, sample_weight)

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
    def _train(self, shard: Shard, x: Any, y: Any, sample_weight: Any) -> Any:
        """`train_replica` of a model without its own `train_step`."""

    def _call(self, x: Any, training: bool) -> Any:
        """The outputs for inputs `x`."""
        return self.model(x, training=training)

    @abstractmethod
    def _loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, *, training: bool) -> Any:
        """The loss (scalar). Raises LossError for one that is no scalar."""

    @abstractmethod
    def _counted(self, shard: Shard, x: Any, y: Any, y_pred: Any, sample_weight: Any, loss: Any) -> Any:
        """Count the rows of this replica and their loss in the metrics; this replica's part (float32) of the loss."""

    def read_metrics(
        self,
        group: Group,
        kind: Literal["train", "evaluate"] | None = None,
        parts: Mapping[str, Any] | None = None,
        *,
        often: bool = False,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Loss and metrics out of every replica's state, and what the last custom step of this `kind` returned.

        - parts: this task's parts of what the step returned, by name.
        - often: whether callbacks see each step, so that it pays to trace what is read. No bit depends on it.

        Numbers are the same floats (or lists) in every task. Collective.
        """
        sums = {} if kind is None else self.returned[kind].gathered(parts or {}, group)
        of_one = often and self._traits.compiles
        with self._read.known(self._metrics()) if of_one else self._states_of_all(group, often):
            # a metric may have several results, in a dict of its own, which Keras takes apart
            found = returned.flat(self.model.get_metrics_result()).items()
            last = {} if kind is None else self.returned[kind].logs(sums)
            return {name: number(value) for name, value in found}, last

    def in_order(self, logs: Mapping[str, Any]) -> Any:
        """What `Model.evaluate` returns of these logs: a number, or a list in the order of the model's metrics."""
        return self.private.in_order(self.model, logs)

    @abstractmethod
    def _states_of_all(self, group: Group, often: bool) -> AbstractContextManager[Any]:
        """While this lasts, the metrics' results are those of all replicas' states. Collective.

        `often`: whether callbacks see each step.
        """

    @abstractmethod
    def _metrics(self) -> list[Any]:
        """The model's metrics, each by itself."""

    @abstractmethod
    def of_global_batch(self) -> AbstractContextManager[Any]:
        """While this lasts, losses of the package act on the global batch, and optimizers where it is one step's."""

    @contextlib.contextmanager
    def _of_all_replicas(self, counting: metric_updates.Counting | None) -> Iterator[None]:
        """While this lasts, metrics and variables count for all replicas, and results that a step returns are known.

        - counting: what is around the updates of metrics where one replica is in sync.
        """
        with contextlib.ExitStack() as stack:
            if self._in_parts:
                stack.enter_context(self._updates.during(self._metrics(), counting))
            if self.custom_train_step or self.custom_test_step:
                stack.enter_context(returned.noting_results(self._metrics()))
            yield

    def state(self, group: Group) -> State:
        """All that training changes of the built model."""
        shared, local = self._weights()
        averaged = [v for v in local.values() if tf.as_dtype(v.dtype).is_floating]
        for place, optimizer in enumerate(self.optimizers):
            shared |= named(OPTIMIZER.format(place), self._variables_of(optimizer))
        shared |= named("counter", self._counters())
        local |= named("seed", self._seeds()) | named("recurrent", self.recurrent_states())
        return State(group, shared, local | named("metric", self._counts()), averaged)

    def _counts(self) -> list[Any]:
        """The variables of the model's metrics."""
        return [v for metric in self.model.metrics for v in metric.variables]

    @abstractmethod
    def _variables_of(self, optimizer: Any) -> Iterable[Any]:
        """The variables of an optimizer."""

    @abstractmethod
    def _seeds(self) -> list[Any]:
        """The variables that hold the states of random numbers, but for those among the model's."""

    def _counters(self) -> list[Any]:
        """The variables that count the model's steps beside its optimizer."""
        return []

    def averages(self) -> Mapping[str, str]:
        """By the name of a weight in a checkpoint, that of its average that the optimizer keeps; of a built model."""
        return {}

    def load(self, values: Values, instead: Mapping[str, str]) -> None:
        """Give the model, outside any strategy, the weights of a checkpoint. Raises StateError for another model's.

        - instead: by the name of a weight, the name of what it gets in its place.
        """
        shared, local = self._weights()
        weights = {instead.get(name, name): variable for name, variable in (shared | local).items()}
        for name, variable in weights.items():
            if values.forms.get(name, (None,))[0] != tuple(variable.shape):
                raise StateError(f"the checkpoint is of another model: variable {name} does not fit")
        assign(values, {name: variable.value for name, variable in weights.items()})

    def _weights(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model's variables that replicas share, and those that each has for itself, both by name."""
        counts = {id(v) for v in self._counts()}  # which tf_keras has among them
        found = [as_keras3(v) for v in self.model.variables if id(v) not in counts]
        return named("model", [v for v in found if not is_local(v)]), named("local", [v for v in found if is_local(v)])

    def scale_learning_rate(self, factor: float, *, schedules_alone: bool = False) -> None:
        """Multiply the learning rate, or all of a schedule's. Raises ValueError for a schedule of the user's own.

        - schedules_alone: leave a rate that is one number, which checkpoints have, as it is.
        """
        optimizers.scale_learning_rate(self.model.optimizer, factor, schedules_alone=schedules_alone)


def number(value: Any) -> Any:
    """A metric's result as a float, or as a list of them where it has several."""
    return np.asarray(value, np.float64).tolist()


def _keeps_states(layer: Any) -> bool:
    """Whether `layer`, of either package, is a stateful recurrent one."""
    return bool(getattr(layer, "stateful", False)) and hasattr(layer, "cell")
