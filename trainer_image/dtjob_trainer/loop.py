"""`fit`: trains a compiled Keras model under whatever strategy the job names, and resumes it after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer import losses, model_file, optimizers, runtime, sources, steps
from dtjob_trainer.callbacks import Callbacks
from dtjob_trainer.class_weights import ClassWeighted
from dtjob_trainer.collective import Group
from dtjob_trainer.state import ModelState, optimizers_of
from dtjob_trainer.training import Training

_CENTRAL_STORAGE = tf.distribute.experimental.CentralStorageStrategy


class FitError(ValueError):
    """An argument of `fit` cannot be right under this strategy; the message names it and the mend."""


def fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    *,
    batch_size: int | None = None,
    epochs: int = 1,
    steps_per_epoch: int | None = None,
    shuffle: bool = True,
    sample_weight: Any = None,
    class_weight: Mapping[int, float] | None = None,
    validation_data: Any = None,
    validation_steps: int | None = None,
    callbacks: Sequence[Any] = (),
    scale_lr: bool = False,
    seed: int = runtime.SEED,
    save: str | None = None,
) -> Any:
    """Train `model`, a compiled Keras 3 model, as the job's strategy says; returns Keras's History.

    - x, y: arrays (or structures of them); or x is a batched `tf.data.Dataset` whose elements are global batches; or a
      function of DataContext that returns this shard's unbatched Dataset. Elements are x, (x, y) or (x, y, weights).
      A Dataset's cache() holds for all epochs; a function is called anew for each, so that one in it would begin anew.
    - batch_size: examples of one step of all replicas together (32 where it is left out).
    - steps_per_epoch: steps after which an epoch ends; the next one goes on in the data where it stopped. A data
      function is called anew for each epoch all the same.
    - shuffle: give arrays and data functions a new order in each epoch; a Dataset has its own.
    - sample_weight: array (or a structure of them as y) of each example's weight, in losses and `weighted_metrics`.
    - class_weight: class to weight, where y is one array of classes or one-hot rows; others count once.
    - validation_data: (x, y), (x, y, weights), a Dataset or a data function; evaluated after each epoch, and by the
      job's evaluator. validation_steps: only as many of its batches.
    - callbacks: Keras callbacks; Keras's own that write run at the chief alone. A checkpoint keeps the state of Keras's
      own, and of yours what their get_state() returns (numbers, text, lists, dicts, arrays) for set_state(…).
    - scale_lr: multiply the learning rate, or all rates of one of Keras's schedules, by the number of replicas.
    - seed: seed of the order of the data.
    - save: where the chief writes the trained model; a relative path lies below the checkpoint directory.

    Losses, metrics and gradients are those of the global batch, as one device has them, however it is cut. Taken as
    means over examples, as nobody can know better: `add_loss`, losses that give one number, an own `compute_loss`.

    With `spec.checkpoint` the run is saved as it goes on and resumes where it was. In the evaluator this call follows
    the checkpoints and ends the process with them. Raises FitError, DataError or CallbackError, before any step, for
    what cannot be right.
    """
    here = runtime.current()
    strategy = here.strategy
    if here.began and here.task is not None and here.task.checkpoint is not None:
        raise FitError("fit() was called a second time, but a job's checkpoints hold one run; start a job for each")
    here.began = True
    here.trained = False
    asynchronous = here.task is not None and here.task.strategy == "ParameterServer" and not here.is_evaluator
    group = Group(strategy, here.task)
    on_tpu = here.task is not None and here.task.strategy == "TPU" and not here.is_evaluator
    own_step = _check_model(model, asynchronous)
    if epochs < 1:
        raise FitError(f"epochs={epochs} must be at least 1")
    place = sources.Place(group.index, group.tasks, group.replicas, remote=asynchronous or on_tpu)

    def source(data: Any, targets: Any, weights: Any, **options: Any) -> sources.Source:
        # validation data that is a Dataset is batched already, whatever the size of training's batches
        own_batches = isinstance(data, tf.data.Dataset) and options["argument"] != "x"
        size = None if own_batches else batch_size
        return sources.make(data, targets, weights, batch_size=size, place=place, seed=seed, **options)

    validation = None
    if validation_data is not None:
        parts = tuple(validation_data) if isinstance(validation_data, tuple | list) else (validation_data, None)
        if len(parts) not in (2, 3):
            raise FitError(
                f"validation_data must be (x, y), (x, y, weights), a Dataset or a data function, not {len(parts)} parts"
            )
        parts = (*parts, None)[:3]
        validation = source(*parts, steps=validation_steps, shuffle=False, drop_last=False, argument="validation_data")
    if here.is_evaluator:
        from dtjob_trainer import evaluator

        evaluator.follow(here, model, validation)
    whole = own_step or on_tpu
    training = source(x, y, sample_weight, steps=steps_per_epoch, shuffle=shuffle, drop_last=whole, argument="x")
    if class_weight is not None:
        training = ClassWeighted(training, class_weight)
    for argument, data in (("x", training), ("validation_data", validation)):
        if data is not None and data.may_be_empty and isinstance(strategy, _CENTRAL_STORAGE):
            raise FitError(
                f"{argument}: the last batch may have fewer examples than there are replicas ({group.replicas}), which "
                "CentralStorage cannot train on; choose another batch_size, or .batch(SIZE, drop_remainder=True) for a "
                "Dataset"
            )
    user_callbacks = Callbacks(callbacks, model, is_chief=here.is_chief, asynchronous=asynchronous, tasks=group.tasks)

    here.progress.report(state="starting", totalSteps=epochs * training.steps)
    steps.build(model, *training.spec())
    engine = _engine(here, model, group, own_step)
    if scale_lr:
        optimizers.scale_learning_rate(model.optimizer, group.replicas)
    run = Training(here, engine, ModelState(model, group), user_callbacks, training, validation, epochs)
    synchronous = tf.distribute.has_strategy() and not asynchronous
    with losses.of_global_batch(), optimizers.summing_first(optimizers_of(model) if synchronous else []):
        history = run.run()
    if save is not None:
        model_file.save(model, save)
    here.trained = True
    return history


def _engine(here: runtime.Runtime, model: Any, group: Group, own_step: bool) -> Any:
    match here.task.strategy if here.task is not None else None:
        case "ParameterServer":
            from dtjob_trainer.coordinator import CoordinatorEngine

            return CoordinatorEngine(model, group, own_step)
        case "TPU":
            from dtjob_trainer.tpu_engine import TpuEngine

            return TpuEngine(model, group, own_step)
    return steps.Engine(model, group, own_step)


def _check_model(model: Any, asynchronous: bool) -> bool:
    """Whether `model` has a train_step of its own. Raises FitError for a model that cannot be trained as it is."""
    if any(base.__module__.startswith("tf_keras.") for base in type(model).__mro__):
        raise FitError(
            "model is of tf_keras, whose losses, metrics and variables this loop does not know; make it with Keras 3, "
            "give dtjob_trainer.train(…) a step of your own, or call its own model.fit(), which works under every "
            "strategy but saves no checkpoints of dtjob's"
        )
    if not isinstance(model, keras.Model):
        raise FitError(f"model must be a Keras 3 model, not {type(model).__module__}.{type(model).__name__}")
    if not model.compiled:
        raise FitError("model is not compiled; call model.compile(optimizer, loss, metrics=…) before fit()")
    optimizer = model.optimizer
    own_step = not type(model).train_step.__module__.startswith("keras.")
    if optimizer is None and not own_step:
        raise FitError("model was compiled without an optimizer; name one in model.compile()")
    distributed = tf.distribute.has_strategy()
    for each in optimizers_of(model):
        overrides = optimizers.overrides_apply(each)
        for why in optimizers.limits(each, distributed=distributed, asynchronous=asynchronous, overrides=overrides):
            raise FitError(f"optimizer: {why}")
    return own_step
