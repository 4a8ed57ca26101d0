# SPDX-License-Identifier: Apache-2.0
"""Compiled tf_keras models in the training loop. Imported only where the program has made one."""

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf
import tf_keras

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.frameworks import functions, keras3, variables
from dtjob_trainer.frameworks import tf_keras as framework
from dtjob_trainer.models import metric_states
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.placement import tracker
from dtjob_trainer.placement.shard import Shard, building, setting
from dtjob_trainer.steps import inlined, tf_keras_steps
from dtjob_trainer.strategies.collective import Group

LEGACY = tf_keras.optimizers.legacy.Optimizer
"""The class of older optimizers."""


class LegacyModel(TrainedModel):
    """A compiled tf_keras model."""

    package, api, private, kinds = "tf_keras", tf_keras, framework, (tf_keras.optimizers.Optimizer, LEGACY)

    @property
    def exact(self) -> bool:
        """Whether the seeds of all random layers are variables, which `state` keeps."""
        return all(map(framework.keeps_seed, framework.random_layers(self.model)))

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

    def build(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make every variable of model, metrics and optimizer, by tracing what a step does that is never run."""
        model, strategy = self.model, tf.distribute.get_strategy()
        if self._traits.asynchronous:
            tf.distribute.coordinator.ClusterCoordinator(strategy)  # run() asks for it; there is one for a strategy

        @tf.function(autograph=False)  # type: ignore[untyped-decorator]
        def step(*args: Any) -> Any:
            return strategy.run(self._made_by_step, args=args)

        with tf_keras_steps.of_global_batch(), tf_keras_steps.sums_of_one_device():
            step.get_concrete_function(x, y, sample_weight, None if self.custom_train_step else _outputs(model))
        if any(map(variables.is_cut, model.variables)):
            raise FitError(
                "strategyOptions.partitioner, or the strategy's variable_partitioner, cuts variables of this tf_keras "
                "model into shards, of which no checkpoint could make wholes again; leave it out, or make the model "
                "with Keras 3"
            )
        if isinstance(model.optimizer, LEGACY) and not self.custom_train_step:
            framework.build_legacy(model.optimizer, model.trainable_variables)
        elif model.optimizer is not None and not self.custom_train_step:
            model.optimizer.build(model.trainable_variables)
        if not self._traits.asynchronous:
            framework.keep_seeds(model)

    def _made_by_step(self, x: Any, y: Any, sample_weight: Any, y_pred: Any) -> Any:
        """What makes variables in a step of one replica."""
        model, replicas = self.model, tf.distribute.get_strategy().num_replicas_in_sync
        with inlined.functions(), setting(building, True), functions.converting():
            if self.custom_train_step:
                one = tf.constant(1)
                with self._tracing(Shard(replicas, one, one * replicas, False), (x, y, sample_weight)):
                    model.train_step(self.pack(x, y, sample_weight))
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
        return metric_states.of_tf_keras(self._counts(), group)

    @contextlib.contextmanager
    def of_global_batch(self) -> Iterator[None]:
        """While this lasts, tf_keras's losses are those of the global batch; its optimizers sum first by themselves."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(tf_keras_steps.of_global_batch())
            if self._traits.synchronous and self._traits.distributed:
                stack.enter_context(tf_keras_steps.sums_of_one_device())
            stack.enter_context(self._of_all_replicas(None))
            yield

    def _variables_of(self, optimizer: Any) -> Iterable[Any]:
        # what tf.train.Checkpoint would save: an optimizer's `variables` leave out its learning rate
        found = tf.train.TrackableView(optimizer).descendants()
        if isinstance(optimizer, LEGACY):  # of which the view has no slots
            found = {id(v): v for v in (*found, *optimizer.weights)}.values()
        weights = {id(v) for v in self.model.variables}
        return [v for v in found if isinstance(v, tf.Variable) and id(v) not in weights]

    def _counters(self) -> list[Any]:
        return [framework.counter_of(self.model)]

    def _seeds(self) -> list[Any]:
        return [v for layer in framework.random_layers(self.model) for v in framework.seeds_of(layer)]

    def _metrics(self) -> list[Any]:
        return list(self.model.metrics)

    @staticmethod
    def _limits(optimizer: Any, traits: Traits) -> Iterator[str]:
        scales = isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer)
        if scales and traits.central_storage:
            yield "LossScaleOptimizer fails inside CentralStorage; use the policy mixed_bfloat16"
        if scales and traits.asynchronous:
            yield "LossScaleOptimizer changes its scale between two workers' steps; use the policy mixed_bfloat16"


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
