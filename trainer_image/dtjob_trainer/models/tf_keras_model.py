# SPDX-License-Identifier: Apache-2.0
"""Compiled tf_keras models in the training loop. Imported only where the program has made one."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf
import tf_keras

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.frameworks import functions, keras3, variables
from dtjob_trainer.frameworks import tf_keras as framework
from dtjob_trainer.models import metric_states, optimizers
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.kept_variables import Plain, State, named
from dtjob_trainer.placement import tracker
from dtjob_trainer.placement.shard import Shard, building, setting
from dtjob_trainer.steps import inlined, returned, tf_keras_steps
from dtjob_trainer.strategies.collective import Group

LEGACY = tf_keras.optimizers.legacy.Optimizer
"""The class of older optimizers."""


class LegacyModel(TrainedModel):
    """A compiled tf_keras model."""

    package, api, private = "tf_keras", tf_keras, framework

    @property
    def exact(self) -> bool:
        """Whether the seeds of all random layers are variables, which `state` keeps."""
        return all(map(framework.keeps_seed, framework.random_layers(self.model)))

    @property
    def steps_per_call(self) -> int:
        """How many steps the model was compiled to run in one call (`steps_per_execution`)."""
        return int(self.model.steps_per_execution.numpy())

    @property
    def is_compiled(self) -> bool:
        """Whether the program has called `compile`."""
        return framework.is_compiled(self.model)

    def check(self) -> None:
        """Raise FitError for a model that cannot be trained as it is."""
        model = self.model
        if not isinstance(model, tf_keras.Model):
            raise FitError(f"model must be a Keras 3 or tf_keras model, not tf_keras's {type(model).__name__}")
        if self._traits.tpu:
            raise FitError("model is of tf_keras, which this loop cannot train on a TPU; make it with Keras 3")
        super().check()
        if tf_keras.backend.floatx() != keras.config.floatx():
            raise FitError(
                f"tf_keras computes in {tf_keras.backend.floatx()}, but data is read as {keras.config.floatx()}; call "
                f"keras.config.set_floatx({tf_keras.backend.floatx()!r}) as well"
            )
        for optimizer in self.optimizers:
            for why in _limits(optimizer, self._traits):
                raise FitError(f"optimizer: {why}")

    def build(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make every variable of model, metrics and optimizer, by tracing what a step does that is never run."""
        model, strategy = self.model, tf.distribute.get_strategy()
        if self._traits.asynchronous:
            tf.distribute.coordinator.ClusterCoordinator(strategy)  # run() asks for it; there is one for a strategy

        def replica(x: Any, y: Any, sample_weight: Any, y_pred: Any) -> Any:
            with inlined.functions(), setting(building, True), functions.converting():
                if self.custom_train_step:
                    one, count = tf.constant(1), strategy.num_replicas_in_sync
                    with self._tracing(Shard(count, one, one * count, False), (x, y, sample_weight)):
                        self.model.train_step(self.pack(x, y, sample_weight))
                    return tf.constant(0)
                y_pred = model(x, training=True) if y_pred is None else y_pred
                if not _is_keras_own(model, "compute_loss"):
                    # called, as it may count in the metrics of the compiled loss or not, which are made by the call
                    model.compute_loss(x, y, y_pred, sample_weight)
                elif not model.compiled_loss.built:
                    model.compiled_loss.build(y_pred)
                if not _is_keras_own(model, "compute_metrics"):
                    model.compute_metrics(x, y, y_pred, sample_weight)
                elif not model.compiled_metrics.built:
                    model.compiled_metrics.build(y_pred, framework.conformed(model.compiled_metrics, y_pred, y))
                return tf.constant(0)

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def step(*args: Any) -> Any:
            return strategy.run(replica, args=args)

        with tf_keras_steps.of_global_batch(), tf_keras_steps.sums_of_one_device():
            step.get_concrete_function(x, y, sample_weight, None if self.custom_train_step else _outputs(model))
        _refuse_shards(model)
        if model.optimizer is not None and not self.custom_train_step:
            _build_optimizer(model.optimizer, model.trainable_variables)
        self._keep_seeds()

    def build_further(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Nothing: `build` has traced the `train_step` itself."""

    @contextlib.contextmanager
    def _tracing(self, shard: Shard, batch: Any, *, apart: bool = False) -> Iterator[None]:
        """While this lasts, AutoGraph converts layers, losses and metrics of the program, as in tf_keras's own fit."""
        with functions.converting(), super()._tracing(shard, batch, apart=apart):
            yield

    def _train(self, shard: Shard, x: Any, y: Any, sample_weight: Any) -> Any:
        with tf.GradientTape() as tape:
            y_pred = self._call(x, training=True)
            loss = self._loss(x, y, y_pred, sample_weight, training=True)
        self.model.optimizer.minimize(loss, self.model.trainable_variables, tape=tape)  # sums over the replicas
        return self._counted(shard, x, y, y_pred, sample_weight, loss)

    def _call(self, x: Any, training: bool) -> Any:
        return self.model(x, training=training)

    def _loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, *, training: bool) -> Any:
        return tf_keras_steps.loss_of(self.model, x, y, y_pred, sample_weight)

    def _counted(self, shard: Shard, x: Any, y: Any, y_pred: Any, sample_weight: Any, loss: Any) -> Any:
        if _is_keras_own(self.model, "compute_metrics"):
            self.model.compiled_metrics.update_state(y, y_pred, sample_weight)
        else:
            self.check_reported(self.model.compute_metrics(x, y, y_pred, sample_weight))
        found = tracker.current()
        return tf.cast(loss if found is None else found.part(loss), tf.float32)

    def _states_of_all(self, group: Group, often: bool) -> AbstractContextManager[Any]:
        return metric_states.of_tf_keras([v for metric in self._metrics() for v in metric.variables], group)

    @contextlib.contextmanager
    def of_global_batch(self) -> Iterator[None]:
        """While this lasts, tf_keras's losses are those of the global batch; its optimizers sum first by themselves."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(tf_keras_steps.of_global_batch())
            if self._traits.synchronous and self._traits.distributed:
                stack.enter_context(tf_keras_steps.sums_of_one_device())
            if self._in_parts:
                stack.enter_context(self._updates.during(self._metrics(), None))
            if self.custom_train_step or self.custom_test_step:
                stack.enter_context(returned.noting_results(self.model.metrics))
            yield

    def state(self, group: Group) -> State:
        """All variables of the built model."""
        shared, local = self._weights()
        averaged = [v for v in local.values() if tf.as_dtype(v.dtype).is_floating]
        weights = {id(v) for v in self.model.variables}
        for place, optimizer in enumerate(self.optimizers):
            # what tf.train.Checkpoint would save: an optimizer's `variables` leave out its learning rate
            found = tf.train.TrackableView(optimizer).descendants()
            if isinstance(optimizer, LEGACY):  # of which the view has no slots
                found = {id(v): v for v in (*found, *optimizer.weights)}.values()
            own = [Plain(v) for v in found if isinstance(v, tf.Variable) and id(v) not in weights]
            shared |= named(f"optimizer-{place}", own)
        shared |= named("counter", [Plain(framework.counter_of(self.model))])
        seeds = [v for layer in framework.random_layers(self.model) for v in framework.seeds_of(layer)]
        local |= named("seed", [Plain(v) for v in seeds])
        local |= named("recurrent", [Plain(v) for v in self.recurrent_states()])
        metrics = [Plain(v) for metric in self.model.metrics for v in metric.variables]
        return State(group, shared, local | named("metric", metrics), averaged)

    def _weights(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model's variables that replicas share, and those that each has for itself, both by name."""
        metrics = {id(v) for metric in self.model.metrics for v in metric.variables}
        found = [Plain(v) for v in self.model.variables if id(v) not in metrics]
        return named("model", [v for v in found if not v.local]), named("local", [v for v in found if v.local])

    @property
    def optimizers(self) -> list[Any]:
        """Every optimizer of the model."""
        return optimizers.kept_by(self.model, (tf_keras.optimizers.Optimizer, LEGACY))

    def _keep_seeds(self) -> None:
        """Have Dropout and its like draw from generators whose state is a variable: otherwise nobody could save it."""
        if self._traits.asynchronous:
            return
        for layer in framework.random_layers(self.model):
            if not framework.keeps_seed(layer):
                framework.keep_seed(layer)

    def _metrics(self) -> list[Any]:
        """The model's metrics, each by itself."""
        return list(self.model.metrics)


def _limits(optimizer: Any, traits: Traits) -> Iterator[str]:
    """What of `optimizer` cannot be right under a strategy with these traits, each with its reason and the mend."""
    scales = isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer)
    if scales and traits.central_storage:
        yield "LossScaleOptimizer fails inside CentralStorage; use the policy mixed_bfloat16"
    if scales and traits.asynchronous:
        yield "LossScaleOptimizer changes its scale between two workers' steps; use the policy mixed_bfloat16"


def _refuse_shards(model: Any) -> None:
    """Raise FitError for a built model some variables of which are shard."""
    if any(map(variables.is_cut, model.variables)):
        raise FitError(
            "strategyOptions.partitioner, or the strategy's variable_partitioner, cuts variables of this tf_keras "
            "model into shards, of which no checkpoint could make wholes again; leave it out, or make the model "
            "with Keras 3"
        )


def _build_optimizer(optimizer: Any, variables: Any) -> None:
    """Make the variables of `optimizer` for those that it trains."""
    if not isinstance(optimizer, LEGACY):
        optimizer.build(variables)
        return
    framework.build_legacy(optimizer, variables)


def _outputs(model: Any) -> Any:
    """Specs of the outputs of a model of tf_keras's own layers, which made its variables with them; None of any other:
    a layer of the program's own may make some only where it is called with training=True, as it was not."""
    if not framework.is_functional(model) or not model.outputs:
        return None
    layers = keras3.layers_of(model, itself=False)
    known = all(layer.built and type(layer).__module__.startswith("tf_keras.") for layer in layers)
    return tf.nest.map_structure(lambda output: output.type_spec, model.output) if known else None


def _is_keras_own(model: Any, method: str) -> bool:
    return getattr(type(model), method) is getattr(tf_keras.Model, method)
