# SPDX-License-Identifier: Apache-2.0
"""Compiled Keras 3 models in the training loop.

Keras builds an optimizer when it is first applied, which is too late to be saved, and fails under Mirrored.
"""

import contextlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError, FrameworkError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.frameworks.keras3 import global_generator, one_generator
from dtjob_trainer.models import metric_states, optimizers
from dtjob_trainer.models.compiled import OPTIMIZER, TrainedModel
from dtjob_trainer.models.kept_variables import added_to, named
from dtjob_trainer.placement import kinds, tracker
from dtjob_trainer.placement.shard import Shard, building, setting
from dtjob_trainer.steps import inlined, losses, optimizer_steps
from dtjob_trainer.strategies import sharded_variables
from dtjob_trainer.strategies.collective import Group

_HOMES = tuple(
    dict.fromkeys(
        next(base for base in kind.__mro__ if "apply" in vars(base))
        for kind in (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer, keras.optimizers.MultiOptimizer)
    )
)
"""The classes of Keras that have an `apply` of their own."""


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

    package, api, private, kinds = "keras", keras, keras3, (keras.optimizers.Optimizer,)
    _limits = staticmethod(optimizers.limits)

    def __init__(self, model: Any, traits: Traits, scaled_step: bool | None = None) -> None:
        """Raises FitError for what is no Keras 3 model."""
        if not isinstance(model, keras.Model):
            kind = f"{type(model).__module__}.{type(model).__name__}"
            raise FitError(f"model must be a Keras 3 or tf_keras model, not {kind}")
        super().__init__(model, traits, scaled_step)
        self._generator: Any = None
        """Keras's own generator for random numbers that are asked for without a seed; made by `build`."""

    def remarks(self) -> Iterator[str]:
        """In what the model, which is not built yet, is trained otherwise than by Keras's own fit, and why."""
        yield from super().remarks()
        for each in self.optimizers:
            yield from optimizers.remarks(each)

    def build(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Make every variable of model, metrics and optimizer, from the specs of a batch.

        A `train_step` of the model's own may call layers alone, or call the model with all of a batch.
        """
        custom, need_no_call = self.custom_train_step, self.custom_train_step and not self._unbuilt()
        if custom and type(self.model).call is keras.Model.call:  # which Keras calls nowhere
            self._check_built()
        else:
            try:
                _build_by_call(self.model, x, y, sample_weight, custom=custom)
            except Exception as error:
                if isinstance(error, FrameworkError) or not need_no_call:
                    raise
                self._check_built()
        self._generator = global_generator()
        self._check_optimizers()  # once more, as a MultiOptimizer may have made its own only now

    def build_further(self, x: Any, y: Any, sample_weight: Any) -> None:
        """Build the optimizers that a `train_step` of the model's own applies, for the variables that they are given.

        One replica's step of all rows is traced, and never run. Raises FitError if it applies an optimizer that is not
        among the model's.
        """
        if not self.custom_train_step:
            return
        model, strategy = self.model, tf.distribute.get_strategy()
        sharded_variables.check_custom_step(model)
        if self._traits.asynchronous:
            tf.distribute.coordinator.ClusterCoordinator(strategy)  # run() asks for it; there is one for a strategy

        def replica(*data: Any) -> Any:
            with inlined.functions(), setting(building, True):
                model.train_step(self.pack(*data))
            return tf.constant(0)

        function = tf.function(lambda *data: strategy.run(replica, args=data), autograph=False)
        with one_generator(self._generator), self._of_all_replicas(self._counting):
            with _recording() as applied:
                function.get_concrete_function(x, y, sample_weight)
            for optimizer, variables in applied.values():
                if not any(optimizer is each for each in self.optimizers):
                    raise FitError(
                        f"train_step applies the optimizer {optimizer.name}, which no checkpoint would have; keep it "
                        "in an attribute of the model itself"
                    )
                if not optimizer.built:
                    own = optimizer is model.optimizer
                    optimizer.build(model.trainable_variables if own else list(variables.values()))
        self._check_optimizers()

    def _unbuilt(self) -> list[str]:
        """The names of layers that are not built yet."""
        return [layer.name for layer in keras3.layers_of(self.model, itself=False) if not layer.built]

    def _check_built(self) -> None:
        """Raise FitError for a model that cannot be called on `x`, and whose layers or metrics are not built."""
        what = f"model: {type(self.model).__name__} has no call(), so that nobody can build "
        if names := self._unbuilt():
            raise FitError(f"{what}{', '.join(names)}; begin it with keras.Input, or call it on one batch before fit()")
        metrics = keras3.compiled_metrics(self.model)
        if not self._traits.distributed or metrics is None or metrics.built:
            return
        given = keras.tree.flatten(keras3.given_metrics(metrics))
        # a model may have others of its own, and reset and report those alone
        if any(each is not None for each in given) and any(each is metrics for each in self.model.metrics):
            raise FitError(
                f"{what}the metrics of compile(); keep metrics in attributes of the model, and update them in "
                "train_step"
            )

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
        variables = list({id(v): v for v in [*self._counts(), *variables]}.values())
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
            self._of_all_replicas(self._counting if self.custom_train_step or self.custom_test_step else None),
        ):
            yield

    def _variables_of(self, optimizer: Any) -> Iterable[Any]:
        return list(optimizer.variables)

    def _seeds(self) -> list[Any]:
        return [self._generator.state]

    def averages(self) -> Mapping[str, str]:
        """By the name of a weight in a checkpoint, that of its average that the optimizer keeps; of a built model."""
        optimizer = self.model.optimizer
        if not optimizer.built:  # `build` leaves the optimizer of a custom train_step alone
            optimizer.build(self.model.trainable_variables)
        weights = {id(v): name for name, v in self._weights()[0].items()}
        kept = {id(v): name for name, v in named(OPTIMIZER.format(0), optimizer.variables).items()}
        pairs = [pair for inner in optimizer_steps.innermost(optimizer) for pair in optimizer_steps.averages_of(inner)]
        return {weights[id(v)]: kept[id(average)] for v, average in pairs}

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


def _build_by_call(model: Any, x: Any, y: Any, sample_weight: Any, *, custom: bool) -> None:
    if custom and y is None:  # losses and metrics are built of shapes: take the outputs
        symbols = keras.tree.map_structure(lambda part: keras.KerasTensor(part.shape, part.dtype.name), x)
        y = model(symbols)
    with losses.averages_of_one_device(), setting(building, True):
        _build_of_composites(model, x, y, sample_weight)
        keras3.build_of_specs(model, x, y, sample_weight)


def _build_of_composites(model: Any, *parts: Any) -> None:
    """Build model, metrics and losses where some of x, y and weights, given by their specs, are ragged or sparse.

    Keras's own way takes all of them for dense, and leaves alone what is built already.
    """
    specs = keras.tree.flatten(parts)
    if not any(isinstance(spec, (tf.RaggedTensorSpec, tf.SparseTensorSpec)) for spec in specs):
        return

    def build(*others: Any) -> None:
        """Keras would give ragged tensors as dense ones, which lack their methods."""
        left = iter(others)
        x, y, weight = keras.tree.map_structure(lambda s: _ragged(s) if _is_ragged(s) else next(left), parts)
        arguments = {"x": x, "y": y, "y_pred": model(x, training=False), "sample_weight": weight}
        metrics, loss = keras3.compiled_metrics(model), keras3.compiled_loss(model)
        if metrics is not None and not metrics.built:
            model.compute_metrics(**arguments)
        if loss is not None and not loss.built:
            keras3.loss_function(model)(training=False, **arguments)

    keras3.output_spec(build, *(_symbol(spec) for spec in specs if not _is_ragged(spec)))


def _is_ragged(spec: Any) -> bool:
    return isinstance(spec, tf.RaggedTensorSpec)


def _ragged(spec: Any) -> Any:
    shape = spec.shape[spec.ragged_rank + 1 :]
    return tf.compat.v1.ragged.placeholder(spec.dtype, spec.ragged_rank, shape)


def _symbol(spec: Any) -> Any:
    """The symbolic tensor of Keras for a spec that is not ragged. A symbolic tensor, and None, come back unchanged."""
    if spec is None or isinstance(spec, keras.KerasTensor):
        return spec
    return keras.KerasTensor(spec.shape, spec.dtype.name, sparse=isinstance(spec, tf.SparseTensorSpec))


@contextlib.contextmanager
def _recording() -> Iterator[dict[int, tuple[Any, dict[int, Any]]]]:
    """While this lasts, Keras's optimizers note what they are applied to, each variable once, and do nothing.

    By id: the optimizer, and its variables by theirs.
    """
    applied: dict[int, tuple[Any, dict[int, Any]]] = {}
    lock = threading.Lock()  # each replica is traced in a thread of its own

    def note(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        with lock:
            _, known = applied.setdefault(id(self), (self, {}))
            known.update({id(v): v for v in trainable_variables or ()})

    with contextlib.ExitStack() as stack:
        for home in _HOMES:
            stack.enter_context(hooks.during(keras3.APPLY, lambda _: note, on=home))
        yield applied
