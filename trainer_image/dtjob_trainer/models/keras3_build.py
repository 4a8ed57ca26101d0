# SPDX-License-Identifier: Apache-2.0
"""How a Keras 3 model, its metrics and the optimizers that its steps apply get their variables before training.

Keras builds an optimizer when it is first applied, which is too late to be saved, and fails under Mirrored.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.errors import FitError
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.placement import shard
from dtjob_trainer.steps import inlined, losses

_HOMES = tuple(
    dict.fromkeys(
        next(base for base in kind.__mro__ if "apply" in vars(base))
        for kind in (keras.optimizers.Optimizer, keras.optimizers.LossScaleOptimizer, keras.optimizers.MultiOptimizer)
    )
)
"""The classes of Keras that have an `apply` of their own."""


def build(model: Any, data: Sequence[Any], traits: Traits, *, custom: bool) -> None:
    """Make every variable of `model` and its metrics, from the specs of x, y and weights.

    - custom: it has a `train_step` of its own, which may call layers alone, or call the model with all of a batch.
    """
    if custom and type(model).call is keras.Model.call:  # which Keras calls nowhere
        check_built(model, traits)
    elif custom and not unbuilt(model):
        try:
            _build_by_call(model, *data, custom=True)
        except Exception:
            check_built(model, traits)
    else:
        _build_by_call(model, *data, custom=custom)


def _build_by_call(model: Any, x: Any, y: Any, sample_weight: Any, *, custom: bool) -> None:
    if custom and y is None:  # losses and metrics are built of shapes: take the outputs
        symbols = keras.tree.map_structure(lambda part: keras.KerasTensor(part.shape, part.dtype.name), x)
        y = model(symbols)
    with losses.averages_of_one_device(), shard.setting(shard.building, True):
        _build_of_composites(model, x, y, sample_weight)
        keras3.build_of_specs(model, x, y, sample_weight)


def _build_of_composites(model: Any, *parts: Any) -> None:
    """Build model, metrics and losses where some of x, y and weights, given by their specs, are ragged or sparse.

    Keras's own way takes all of them for dense, and leaves alone what is built already.
    """
    if not any(isinstance(spec, (tf.RaggedTensorSpec, tf.SparseTensorSpec)) for spec in keras.tree.flatten(parts)):
        return
    y_pred = _outputs(model, parts[0])
    x, y, sample_weight = keras.tree.map_structure(_symbol, parts)
    arguments = {"x": x, "y": y, "y_pred": y_pred, "sample_weight": sample_weight}
    metrics, loss = keras3.compiled_metrics(model), keras3.compiled_loss(model)
    if metrics is not None and not metrics.built:
        keras3.output_spec(model.compute_metrics, **arguments)
    if loss is not None and not loss.built:
        keras3.output_spec(keras3.loss_function(model), training=False, **arguments)


def _outputs(model: Any, specs: Any) -> Any:
    """Keras's symbolic tensors of what `model` gives for inputs of these `specs`."""

    def call(*others: Any) -> Any:
        """Keras would give ragged tensors as dense ones, which lack their methods."""
        left = iter(others)
        x = keras.tree.map_structure(lambda spec: _placeholder(spec) if _is_ragged(spec) else next(left), specs)
        return model(x, training=False)

    return keras3.output_spec(call, *(_symbol(spec) for spec in keras.tree.flatten(specs) if not _is_ragged(spec)))


def _is_ragged(spec: Any) -> bool:
    return isinstance(spec, tf.RaggedTensorSpec)


def _placeholder(spec: Any) -> Any:
    """A ragged tensor of `spec` in the graph that is being made."""
    return tf.compat.v1.ragged.placeholder(spec.dtype, spec.ragged_rank, spec.shape[spec.ragged_rank + 1 :])


def _symbol(spec: Any) -> Any:
    """The symbolic tensor of Keras for a `tf.TypeSpec`. A symbolic tensor, and None, come back unchanged."""
    if spec is None or isinstance(spec, keras.KerasTensor):
        return spec
    dtype = spec.dtype.name
    if _is_ragged(spec):
        ranks = {"ragged_rank": spec.ragged_rank, "row_splits_dtype": spec.row_splits_dtype}
        return keras.KerasTensor(spec.shape, dtype, ragged=True, **ranks)
    return keras.KerasTensor(spec.shape, dtype, sparse=isinstance(spec, tf.SparseTensorSpec))


def unbuilt(model: Any) -> list[str]:
    """The names of a Keras 3 model's layers that are not built yet."""
    return [layer.name for layer in keras3.layers_of(model, itself=False) if not layer.built]


def check_built(model: Any, traits: Traits) -> None:
    """Raise FitError for a Keras 3 model that cannot be called on `x`, and whose layers or metrics are not built."""
    if names := unbuilt(model):
        raise FitError(
            f"model: {type(model).__name__} has no call(), so that nobody can build {', '.join(names)}; begin it with "
            "keras.Input, or call it on one batch before fit()"
        )
    metrics = keras3.compiled_metrics(model)
    if traits.distributed and metrics is not None and not metrics.built and _are_reset(model, metrics):
        raise FitError(
            f"model: {type(model).__name__} has no call(), so that nobody can build the metrics of compile(); keep "
            "metrics in attributes of the model, and update them in train_step"
        )


def _are_reset(model: Any, metrics: Any) -> bool:
    """Whether compile() was given `metrics` that `model`, which may have others of its own, resets and reports."""
    given = keras.tree.flatten(keras3.given_metrics(metrics))
    return any(each is not None for each in given) and any(each is metrics for each in model.metrics)


def build_optimizers(
    model: Any, known: Sequence[Any], step: Callable[..., Any], specs: Sequence[Any], traits: Traits
) -> None:
    """Build those of `known`, the model's optimizers, that `step` applies, for the variables that it applies them to.

    - step: one replica's training step; it is traced on `specs`, the specs of its arguments, and never run.

    Raises FitError where `step` applies an optimizer that is not among `known`.
    """
    strategy = tf.distribute.get_strategy()
    if traits.asynchronous:
        tf.distribute.coordinator.ClusterCoordinator(strategy)  # run() asks for it; there is one for a strategy

    def replica(*data: Any) -> Any:
        with inlined.functions():
            step(*data)
        return tf.constant(0)

    function = tf.function(lambda *data: strategy.run(replica, args=data), autograph=False)
    with _recording() as applied:
        function.get_concrete_function(*specs)
    for optimizer, variables in applied:
        if not any(optimizer is each for each in known):
            raise FitError(
                f"train_step applies the optimizer {optimizer.name}, which no checkpoint would have; keep it in an "
                "attribute of the model itself"
            )
        if not optimizer.built:
            optimizer.build(model.trainable_variables if optimizer is model.optimizer else variables)


@contextlib.contextmanager
def _recording() -> Iterator[list[tuple[Any, list[Any]]]]:
    """While this lasts, Keras's optimizers note what they are applied to, each variable once, and do nothing."""
    applied: list[tuple[Any, list[Any]]] = []
    lock = threading.Lock()  # each replica is traced in a thread of its own

    def note(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        with lock:
            known = next((variables for optimizer, variables in applied if optimizer is self), None)
            if known is None:
                known = []
                applied.append((self, known))
            known += [v for v in trainable_variables or () if not any(v is other for other in known)]

    with contextlib.ExitStack() as stack:
        for home in _HOMES:
            stack.enter_context(hooks.during(keras3.APPLY, lambda _: note, on=home))
        yield applied
