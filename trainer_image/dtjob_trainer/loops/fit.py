"""`fit`: trains a compiled Keras model under whatever strategy the job names, and resumes it after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtjob_trainer.checkpoint import model_file
from dtjob_trainer.engines.choose import engine as engine_of
from dtjob_trainer.errors import FitError
from dtjob_trainer.loops import evaluator, shapes
from dtjob_trainer.loops.callbacks import Callbacks
from dtjob_trainer.loops.fit_data import FitData
from dtjob_trainer.loops.fit_loop import FitLoop
from dtjob_trainer.models import choose
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import Group


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
    callbacks: Sequence[Any] | None = None,
    scale_lr: bool = False,
    seed: int = runtime.SEED,
    save: str | None = None,
) -> Any:
    """Train `model`, a compiled Keras 3 or tf_keras model, as the job's strategy says; returns Keras's History.

    - x, y: arrays or structures of them (a pandas Series is a column, as in Keras), or lists of numbers; or x brings
      global batches: a batched `tf.data.Dataset` of known length or not, a `keras.utils.PyDataset`, in one process a
      generator; or x is a function of DataContext that returns this shard's unbatched Dataset, or a function of no
      argument that returns all of it. Elements are x, (x, y) or (x, y, weights); docs/data.md has the details.
      A Dataset's cache() holds for all epochs; a function is called anew for each, so that one in it would begin anew.
      What shuffle() and random operations give is not had again after a restart (resume is then "approximate"), but
      for those of a Dataset's map() that is not parallel; tf.random.stateless_… is.
    - batch_size: examples of one step of all replicas together (32 where it is left out). On a TPU, or where a model
      has a `train_step` of its own and there are several replicas, a last batch that is not full is left out.
      A Dataset for such a model is batched with drop_remainder=True.
    - steps_per_epoch: steps after which an epoch ends; the next one goes on in the data where it stopped. An epoch ends
      early where the data does, with a warning, and the next begins anew, as in Keras 3. A data function is called
      anew for each epoch all the same.
    - shuffle: give arrays and data functions a new order in each epoch; a Dataset has its own.
    - sample_weight: array (or a structure of them as y) of each example's weight, in losses and `weighted_metrics`.
    - class_weight: class to weight, where y is one array of classes or one-hot rows; others count once.
    - validation_data: (x, y), (x, y, weights), a Dataset or a data function; evaluated after each epoch, and by the
      job's evaluator. validation_steps: only as many of its first batches, or all where there are fewer.
    - callbacks: of the model's Keras; its own that write do so at the chief alone. A checkpoint keeps the state of
      Keras's own, and of yours what their get_state() returns (numbers, text, lists, dicts, arrays) for set_state(…).
    - scale_lr: multiply the learning rate, or all rates of one of Keras's schedules, by the number of replicas.
    - seed: seed of the order of the data.
    - save: where the chief writes the trained model; a relative path lies below the checkpoint directory.

    Losses, metrics and gradients are those of the global batch, as one device has them, however it is cut. Taken as
    means over examples, as nobody can know better: `add_loss`, losses that give one number, an own `compute_loss`.
    A metric function that gives one number counts it once for each replica that has examples. BatchNormalization
    normalises by each replica's own rows, and so does not do what it does on one device.

    Of compile()'s options, `jit_compile` is left aside and `run_eagerly` refused.

    Of tf_keras, random layers such as Dropout draw from generators whose seeds can be saved; refused are TPUs,
    `strategyOptions.partitioner` and legacy optimizers.

    With `spec.checkpoint` the run is saved as it goes on and resumes where it was: with the same bits under the
    synchronous strategies on CPU, or the status says that resume is "approximate". The log names what of the model is
    the cause: random operations of TensorFlow's own, variables that no layer tracks.

    In the evaluator this call follows the checkpoints and ends the process with them. Raises FitError, DataError or
    CallbackError, before any step, for what cannot be right.
    """
    here = runtime.current()
    _begin(here)
    group = Group(here.strategy, here.task)
    trained = choose.of(model, here.traits)
    trained.check()
    _check_numbers(epochs=epochs, steps_per_epoch=steps_per_epoch, validation_steps=validation_steps)
    data = FitData(here, group, trained, batch_size=batch_size, seed=seed)
    validation = data.validation(validation_data, validation_steps) if validation_data is not None else None
    if here.is_evaluator:
        evaluator.follow(here, trained, validation)
    training = data.training(x, y, sample_weight, class_weight, steps=steps_per_epoch, shuffle=shuffle)
    user_callbacks = Callbacks(
        callbacks, trained, is_chief=here.is_chief, asynchronous=here.traits.asynchronous, tasks=group.tasks
    )

    course = data.epochs(training, group, x, steps=steps_per_epoch, epochs=epochs)
    total = course.total(0)
    here.progress.report(state="starting", **({} if total is None else {"totalSteps": total}))
    here.shapes = lambda: shapes.told(model, training.spec())
    trained.build(*training.spec())
    trained.build_further(*training.spec())
    engine = engine_of(trained, group, here.traits)
    if scale_lr:
        trained.scale_learning_rate(group.replicas)
    loop = FitLoop(here, engine, trained.state(group), user_callbacks, course, validation)
    with trained.of_global_batch():
        history = loop.fit()
    if save is not None:
        model_file.save(model, save)
    here.trained = True
    return history


def _begin(here: runtime.Runtime) -> None:
    """Note that training begins. Raises FitError where the job's checkpoints are of an earlier call."""
    if here.began and here.task is not None and here.task.checkpoint is not None:
        raise FitError("fit() was called a second time, but a job's checkpoints hold one run; start a job for each")
    here.began, here.trained = True, False


def _check_numbers(**arguments: int | None) -> None:
    for argument, value in arguments.items():
        if value is not None and value < 1:
            raise FitError(f"{argument}={value} must be at least 1")
