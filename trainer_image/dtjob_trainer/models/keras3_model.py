# SPDX-License-Identifier: Apache-2.0
"""Compiled Keras 3 models in the training loop."""

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.frameworks import keras3
from dtjob_trainer.frameworks.keras3 import global_generator, one_generator
from dtjob_trainer.models import keras3_build, metric_states, optimizers
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.kept_variables import State, added_to, is_local, named
from dtjob_trainer.placement import kinds, tracker
from dtjob_trainer.placement.shard import Shard
from dtjob_trainer.steps import losses, optimizer_steps, returned
from dtjob_trainer.strategies import sharded_variables
from dtjob_trainer.strategies.collective import Group

OPTIMIZER = "optimizer-{}"
"""How names of optimizers' variables begin; the compiled one is the first."""


def trained_model(model: Any, traits: Traits, scaled_step: bool | None = None) -> TrainedModel:
    """`model`, of either package, as the loop uses it under a strategy with these traits.

    - scaled_step: as `fit` takes it.

    Raises FitError for what is no model. tf_keras is imported only where the program has made a model of it.
    """
    if any(base.__module__.startswith("tf_keras.") for base in type(model).__mro__):
        from dtjob_trainer.models.tf_keras_model import LegacyModel

        return LegacyModel(model, traits, scaled_step)
    return KerasModel(model, traits, scaled_step)


class KerasModel(TrainedModel):
    """A compiled Keras 3 model."""

    package, api, private = "keras", keras, keras3

    def __init__(self, model: Any, traits: Traits, scaled_step: bool | None = None) -> None:
        """Raises FitError for what is no Keras 3 model."""
        if not isinstance(model, keras.Model):
            kind = f"{type(model).__module__}.{type(model).__name__}"
            raise FitError(f"model must be a Keras 3 or tf_keras model, not {kind}")
        super().__init__(model, traits, scaled_step)
        self._generator: Any = None
        """Keras's own generator for random numbers that are asked for without a seed; made by `build`."""

    @property
    def optimizers(self) -> list[Any]:
        """Every optimizer of the model."""
        return optimizers.of_model(self.model)

    @property
    def steps_per_call(self) -> int:
        """How many steps the model was compiled to run in one call (`steps_per_execution`)."""
        asked = self.model.steps_per_execution
        return asked if isinstance(asked, int) else 1

    @property
    def is_compiled(self) -> bool:
        """Whether the program has called `compile`."""
        return bool(self.model.compiled)

    def check(self) -> None:
        """Raise FitError for a model that cannot be trained as it is."""
        super().check()
        self._check_optimizers()

    def remarks(self) -> Iterator[str]:
        """In what the model, which is not built yet, is trained otherwise than by Keras's own fit, and why."""
        yield from super().remarks()
        for each in self.optimizers:
            yield from optimizers.remarks(each)

    def build(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make every variable of model, metrics and optimizer, from the specs of a batch."""
        keras3_build.build(self.model, (x, y, sample_weight), self._traits, custom=self.custom_train_step)
        self._generator = global_generator()
        self._check_optimizers()  # once more, as a MultiOptimizer may have made its own only now

    def build_further(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Build the optimizers that a `train_step` of the model's own applies."""
        if self.custom_train_step:
            sharded_variables.check_custom_step(self.model)
            with one_generator(self._generator), self._of_all_replicas():
                specs = (x, y, sample_weight)
                keras3_build.build_optimizers(self.model, self.optimizers, self._custom_step, specs, self._traits)
            self._check_optimizers()

    def _custom_step(self, *data: Any) -> Any:
        """The model's own `train_step` of one replica's rows, which are all of the batch."""
        return self.model.train_step(self.pack(*data))

    def _train(self, shard: Shard, x: Any, y: Any, sample_weight: Any) -> Any:
        model = self.model
        with tf.GradientTape() as tape:
            y_pred = self._call(x, training=True)
            loss = self._loss(x, y, y_pred, sample_weight, training=True)
            to_minimize = model.optimizer.scale_loss(loss)
        weights = model.trainable_weights
        if weights:
            gradients = sharded_variables.gradients_of(tape, to_minimize, weights)
            model.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=1)  # as Keras does
        return self._counted(shard, x, y, y_pred, sample_weight, loss)

    @contextlib.contextmanager
    def _states_of_all(self, group: Group, often: bool) -> Iterator[None]:
        variables = [v for metric in self._metrics() for v in metric.variables]
        variables = list({id(v): v for v in [*self.model.metrics_variables, *variables]}.values())
        mapping = metric_states.of_keras3(variables, group, self._read if often else None)
        with contextlib.ExitStack() as stack:
            if often:
                stack.enter_context(self._read.known(self._metrics(), mapping))
            stack.enter_context(keras.StatelessScope(state_mapping=mapping))
            yield

    def _metrics(self) -> list[Any]:
        """The model's metrics, each by itself."""
        found: list[Any] = []
        for metric in self.model.metrics:
            found += metric.metrics if metric is keras3.compiled_metrics(self.model) else [metric]
        return found

    @contextlib.contextmanager
    def of_global_batch(self) -> Iterator[None]:
        """While this lasts, Keras's losses and, of a synchronous step, optimizers act on the global batch."""
        with (
            losses.of_global_batch(),
            keras3.losses_apart(self.model, tracker.current),
            optimizer_steps.of_all_replicas(self.optimizers, self._traits),
            one_generator(self._generator),
            self._of_all_replicas(),
        ):
            yield

    @contextlib.contextmanager
    def _of_all_replicas(self) -> Iterator[None]:
        """While this lasts, metrics and variables count for all replicas, and results that a step returns are known."""
        with contextlib.ExitStack() as stack:
            if self._in_parts:
                own = self._counting if self.custom_train_step or self.custom_test_step else None
                stack.enter_context(self._updates.during(self._metrics(), own))
            if self.custom_train_step or self.custom_test_step:
                stack.enter_context(returned.noting_results(self._metrics()))
            yield

    def state(self, group: Group) -> State:
        """All variables of the built model."""
        shared, local = self._weights()
        averaged = [v for v in local.values() if tf.as_dtype(v.dtype).is_floating]
        for place, optimizer in enumerate(self.optimizers):
            shared |= named(OPTIMIZER.format(place), optimizer.variables)
        local |= named("seed", [self._generator.state]) | named("metric", self.model.metrics_variables)
        local |= named("recurrent", self.recurrent_states())
        return State(group, shared, local, averaged)

    def averages(self) -> Mapping[str, str]:
        """By the name of a weight in a checkpoint, that of its average that the optimizer keeps; of a built model."""
        optimizer = self.model.optimizer
        if not optimizer.built:  # `build` leaves the optimizer of a custom train_step alone
            optimizer.build(self.model.trainable_variables)
        weights = {id(v): name for name, v in self._weights()[0].items()}
        kept = {id(v): name for name, v in named(OPTIMIZER.format(0), optimizer.variables).items()}
        pairs = [pair for inner in optimizer_steps.innermost(optimizer) for pair in optimizer_steps.averages_of(inner)]
        return {weights[id(v)]: kept[id(average)] for v, average in pairs}

    def _weights(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model's variables that replicas share, and those that each has for itself, both by name."""
        found = self.model.variables
        return named("model", [v for v in found if not is_local(v)]), named("local", [v for v in found if is_local(v)])

    def _check_optimizers(self) -> None:
        for each in self.optimizers:
            for why in optimizers.limits(each, self._traits):
                raise FitError(f"optimizer: {why}")

    @contextlib.contextmanager
    def _counting(self, shard: Shard, variables: Sequence[Any]) -> Iterator[None]:
        """While this lasts, metrics' `variables` are updated, also where workers share them.

        Many of Keras 3's assign `variable + x`. Under ParameterServer workers would overwrite each other's: what is
        counted from zero is added, by the variable's own operation. A metric of the program may do more than count:
        what its variables are assigned is added where it is a sum with what they were.
        """
        if not self._traits.shared_variables or shard.replicas > 1:
            yield
            return
        program = self._updates.of_program(self._metrics())
        counts = [v for v in variables if v.aggregation == "sum" and id(v) not in program]
        zeros = {id(v): tf.zeros(v.shape, v.dtype) for v in counts}
        with keras.StatelessScope([(v, zeros[id(v)]) for v in counts]) as scope:
            yield
        for variable in variables:
            value = scope.get_current_value(variable)
            if id(variable) in zeros:
                added = None if value is zeros[id(variable)] else value
            else:
                added = None if value is None else added_to(variable, value)
                if value is not None and added is None:
                    empty = shard.may_be_empty
                    variable.assign(tf.where(shard.examples > 0, value, variable.value) if empty else value)
            if added is not None:
                variable.assign_add(shard.counted(added))

    def _call(self, x: Any, training: bool) -> Any:
        model = self.model
        return model(x, training=training) if keras3.takes_training(model) else model(x)

    def _loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, *, training: bool) -> Any:
        return losses.of_model(self.model, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)

    def _counted(self, shard: Shard, x: Any, y: Any, y_pred: Any, sample_weight: Any, loss: Any) -> Any:
        """Count this replica's rows and its part of the loss in the metrics; that part (float32)."""
        keeper, rows = keras3.loss_tracker(self.model), shard.examples
        found = tracker.current()
        if found is not None:
            loss, rows = found.part(loss), kinds.put(tf.cast(rows, keeper.dtype), kinds.PARTIAL)
        keeper.total.assign_add(tf.cast(loss, keeper.dtype) * tf.cast(shard.total, keeper.dtype))
        keeper.count.assign_add(tf.cast(rows, keeper.dtype))
        with self._counting(shard, self.model.metrics_variables):
            if keras3.reports_as_keras(self.model):  # results, which nobody reads here, would be put together each step
                keras3.update_metrics(self.model, y, y_pred, sample_weight)
            else:
                self.check_reported(self.model.compute_metrics(x, y, y_pred, sample_weight=sample_weight))
        return tf.cast(loss, tf.float32)
