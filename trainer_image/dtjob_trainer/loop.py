"""`fit`: trains a compiled Keras model under whatever strategy the job names, and resumes it after a restart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer import runtime, sources, steps
from dtjob_trainer.callbacks import Callbacks
from dtjob_trainer.checkpoint import TEMPORARY_MODEL, Writer
from dtjob_trainer.collective import Group
from dtjob_trainer.state import ModelState
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
    validation_data: Any = None,
    callbacks: Sequence[Any] = (),
    scale_lr: bool = False,
    seed: int = runtime.SEED,
    save: str | None = None,
) -> Any:
    """Train `model`, a compiled Keras 3 model, as the job's strategy says; returns Keras's History.

    - x, y: arrays (or structures of them); or x is a batched `tf.data.Dataset` whose elements are global batches; or a
      function of DataContext that returns this shard's unbatched Dataset.
    - batch_size: examples of one step of all replicas together (32 where it is left out).
    - validation_data: (x, y), a Dataset or a data function; evaluated after each epoch, and by the job's evaluator.
    - callbacks: Keras callbacks. Those that write files run at the chief alone.
    - scale_lr: multiply the learning rate by the number of replicas.
    - seed: seed of the order of the data.
    - save: where the chief writes the trained model; a relative path lies below the checkpoint directory.

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
    own_step = _check_model(model, group)
    if epochs < 1:
        raise FitError(f"epochs={epochs} must be at least 1")
    place = sources.Place(group.index, group.tasks, group.replicas, remote=asynchronous)

    def source(data: Any, targets: Any, **options: Any) -> sources.Source:
        # validation data that is a Dataset is batched already, whatever the size of training's batches
        own_batches = isinstance(data, tf.data.Dataset) and options["argument"] != "x"
        size = None if own_batches else batch_size
        return sources.make(data, targets, batch_size=size, place=place, seed=seed, **options)

    validation = None
    if validation_data is not None:
        pair = validation_data if isinstance(validation_data, tuple | list) else (validation_data, None)
        if len(pair) != 2:
            raise FitError(f"validation_data must be (x, y), a Dataset or a data function, not {len(pair)} parts")
        validation = source(*pair, steps=None, shuffle=False, drop_last=False, argument="validation_data")
    if here.is_evaluator:
        from dtjob_trainer import evaluator

        evaluator.follow(here, model, validation)
    training = source(x, y, steps=steps_per_epoch, shuffle=True, drop_last=own_step, argument="x")
    for argument, data in (("x", training), ("validation_data", validation)):
        if data is not None and data.may_be_empty and isinstance(strategy, _CENTRAL_STORAGE):
            raise FitError(
                f"{argument}: the last batch has fewer examples than there are replicas ({group.replicas}), which "
                "CentralStorage cannot train on; choose another batch_size"
            )
    user_callbacks = Callbacks(callbacks, model, is_chief=here.is_chief, asynchronous=asynchronous)

    here.progress.report(state="starting", totalSteps=epochs * training.steps)
    steps.build(model, *training.spec())
    engine = _engine(model, group, asynchronous, own_step)
    writer = None
    if here.is_chief and here.task is not None and here.task.checkpoint is not None:
        writer = Writer(here.task, here.progress.report)
    if scale_lr:
        _scale_learning_rate(model, group.replicas)
    run = Training(here, engine, ModelState(model, group), user_callbacks, writer, training, validation, epochs)
    history = run.run()
    if save is not None and here.is_chief:
        here.progress.report(model=_save_model(here, model, save))
    here.trained = True
    return history


def _engine(model: Any, group: Group, asynchronous: bool, own_step: bool) -> Any:
    if asynchronous:
        from dtjob_trainer.coordinator import CoordinatorEngine

        return CoordinatorEngine(model, group, own_step)
    return steps.Engine(model, group, own_step)


def _save_model(here: runtime.Runtime, model: Any, save: str) -> str:
    """Write the model whole or not at all; returns its path."""
    path = save
    if not save.startswith("/") and "://" not in save and here.task is not None and here.task.checkpoint is not None:
        path = f"{here.task.checkpoint.directory}/{save}"
    folder, separator, name = path.rpartition("/")
    if separator:
        tf.io.gfile.makedirs(folder)
    temporary = f"{folder}{separator}{TEMPORARY_MODEL}{name}"
    if here.task is not None and here.task.strategy == "MultiWorkerMirrored":
        strategy = here.strategy
        # saving makes variables of its own, which in the strategy's scope would wait for the other tasks' share
        tf.distribute.experimental_set_strategy(None)
        try:
            model.save(temporary)
        finally:
            tf.distribute.experimental_set_strategy(strategy)
    else:
        model.save(temporary)
    tf.io.gfile.rename(temporary, path, overwrite=True)
    return path


def _check_model(model: Any, group: Group) -> bool:
    """Whether `model` has a train_step of its own. Raises FitError for a model that cannot be trained as it is."""
    if not isinstance(model, keras.Model):
        raise FitError(f"model must be a Keras 3 model, not {type(model).__module__}.{type(model).__name__}")
    if not model.compiled:
        raise FitError("model is not compiled; call model.compile(optimizer, loss, metrics=…) before fit()")
    optimizer = model.optimizer
    own_step = not type(model).train_step.__module__.startswith("keras.")
    if optimizer is None and not own_step:
        raise FitError("model was compiled without an optimizer; name one in model.compile()")
    for name, applies, why in _optimizer_limits(group.replicas > 1):
        if applies and getattr(optimizer, name, None):
            raise FitError(f"optimizer: {name} {why}")
    return own_step


def _optimizer_limits(many: bool) -> list[tuple[str, bool, str]]:
    """Options of Keras's optimizers, whether they are wrong here, and why."""
    distributed = tf.distribute.has_strategy()
    clipped = "would clip each replica's gradients before they are summed, unlike one device; leave it out"
    return [
        ("use_ema", distributed, "fails inside TensorFlow's strategies; leave it out"),
        ("gradient_accumulation_steps", distributed, "fails inside TensorFlow's strategies; use a larger batch_size"),
        ("clipnorm", many, clipped),
        ("global_clipnorm", many, clipped),
        ("clipvalue", many, clipped),
    ]


def _scale_learning_rate(model: Any, replicas: int) -> None:
    optimizer = model.optimizer
    if isinstance(optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule | Callable):
        raise FitError("scale_lr multiplies a plain learning rate; scale the LearningRateSchedule in your program")
    optimizer.learning_rate = float(optimizer.learning_rate.numpy()) * replicas
