# SPDX-License-Identifier: Apache-2.0
"""`fit`: trains a compiled Keras model under whatever strategy the job names, and resumes it after a restart."""

from collections.abc import Collection, Mapping
from typing import Any

from dtjob_trainer.callbacks.called import Callbacks
from dtjob_trainer.checkpoint import model_file
from dtjob_trainer.data.python_batches import is_sequence
from dtjob_trainer.loops import alike, building, evaluator
from dtjob_trainer.loops.fit_arguments import LeftAside, Numbers, Queue, schedule
from dtjob_trainer.loops.fit_data import FitData
from dtjob_trainer.loops.loop import FitLoop
from dtjob_trainer.models import initial_values, own_fit
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.models.keras3_model import trained_model
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import Group


@runtime.may_be_cut_off
@own_fit.runs_own
def fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Any = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: bool | str = True,
    class_weight: Mapping[int, float] | None = None,
    sample_weight: Any = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int | Collection[int] = 1,
    max_queue_size: int = 10,
    workers: int = 1,
    use_multiprocessing: bool = False,
    *,
    scale_lr: bool = False,
    scaled_step: bool | None = None,
    seed: int = runtime.SEED,
    save: str | None = None,
) -> Any:
    """Train `model`, a compiled Keras 3 or tf_keras model, as the job's strategy says; returns Keras's History.

    The arguments up to `validation_freq` are those of Keras's `Model.fit`, in its order, with its defaults and its
    meaning (docs/reference/fit.md shows under which strategy); the next three are tf_keras's alone. What has no effect
    is named in the log. The History has all epochs of the run, restarts included.

    - x, y: arrays or structures of them (a pandas Series is a column, as in Keras), or lists of numbers; or x brings
      global batches: a batched `tf.data.Dataset`, a `keras.utils.PyDataset` or a `tf_keras.utils.Sequence`, in one
      process a generator; or x is a function of DataContext that returns this shard's unbatched Dataset, or a function
      of no argument that returns all of it. Elements are x, (x, y) or (x, y, weights); docs/training/data.md has the
      details. A Dataset's cache() holds for all epochs; a function is called anew for each.
    - batch_size: examples of one step of all replicas together (32 where it is left out). Where they are fewer than
      replicas, some replicas rest. On a TPU, or where a model's own `train_step` divides by several replicas
      (scaled_step), a last batch that is not full is left out: batch a Dataset with drop_remainder=True.
    - epochs, initial_epoch: the number of the epoch (from 0) to end before and to begin with. A restart goes on where
      its checkpoint is. Each epoch's order is that of its number.
    - verbose: "auto" prints a line of dtjob's own after each epoch, 0 none; 1 and 2 print what Keras prints, at the
      chief. A bar moves only where one process trains in a terminal; elsewhere it is shown once, after the epoch.
    - callbacks: of the model's Keras, one, a list, or a CallbackList; its own that write do so at the chief alone. A
      checkpoint keeps the state of Keras's own. Of yours it keeps what their get_state() returns for set_state(…), or
      the attributes that training changes: numbers, text, lists, dicts, arrays.
    - validation_split: hold out this part of the arrays' rows, the last ones as they were given.
    - validation_data: x, (x, y), (x, y, weights), a Dataset or whatever x may be; evaluated after each epoch, and by
      the job's evaluator (which takes no notice of validation_freq). validation_steps: only as many of its first
      batches, or all where there are fewer. validation_batch_size: of batch_size where it is left out.
      validation_freq: every so many epochs, or after those in a list (numbers from 1).
    - shuffle: give arrays and data functions a new order in each epoch; a Dataset has its own. "batch" leaves each
      batch of arrays its rows.
    - class_weight: class to weight, where y is one array of classes or one-hot rows; others count once.
    - sample_weight: array (or a structure of them as y) of each example's weight, in losses and `weighted_metrics`.
    - steps_per_epoch: steps after which an epoch ends; the next one goes on in the data where it stopped. An epoch ends
      early where the data does, with a warning, and the next begins anew, as in Keras 3.
    - max_queue_size, workers, use_multiprocessing: how a Sequence is read. A PyDataset has its own.
    - scale_lr: multiply the learning rate, or all rates of one of Keras's schedules, by the number of replicas with
      which the run begins.
    - scaled_step: whether the model's own `train_step` divides by the number of replicas itself, so that gradients are
      added up as they are. None: it does if its class, or what that calls, names num_replicas_in_sync or
      get_replica_context; the log names the line.
    - seed: seed of the order of the data.
    - save: where the chief writes the trained model; a relative path lies below the checkpoint directory.

    Losses, metrics and gradients are those of the global batch, as one device has them, however it is cut. A
    `train_step` of the model's own is written for one device. docs/reference/strategies.md says what layers do
    otherwise, such as BatchNormalization, and docs/training/calls.md what a model's own `fit()` and `evaluate()` do.

    Of compile()'s options, `run_eagerly` is left aside with a warning. `jit_compile` holds under Default and OneDevice:
    where Keras would, XLA compiles the step. With several replicas the log says that it is left aside.

    Models of tf_keras are refused on TPUs, and where `strategyOptions.partitioner` has cut their variables.

    With `spec.checkpoint` the run is saved as it goes on and resumes where it was: with the same bits under the
    synchronous strategies on CPU, or the status says that resume is "approximate", and the log says why.

    Every task is to be given the same. A data function makes its own task's share, and callbacks that only look on may
    be of one task alone; those that change the learning rate are to be everywhere.

    In the evaluator this call follows the checkpoints and ends the process with them. Raises FitError, DataError or
    CallbackError, before any step, for what cannot be right.
    """
    here = runtime.under_strategy()
    here.begin_stage()
    group = Group(here.strategy, here.task)
    trained = trained_model(model, here.traits, scaled_step)
    trained.check()
    aside = LeftAside(validated=validation_data is not None or bool(validation_split))
    numbers = Numbers(batch_size, epochs, initial_epoch, steps_per_epoch, validation_steps, validation_batch_size)
    numbers, validates = numbers.read(trained.package, aside), schedule(validation_freq, aside)
    queue = Queue(max_queue_size, workers, use_multiprocessing)
    queue.check(trained.package, any(map(is_sequence, (x, validation_data))), aside)
    data = FitData(here, group, trained, numbers, queue, aside, seed)
    (x, y, sample_weight), validation_data = data.held_out(x, y, sample_weight, validation_split, validation_data)
    validation = data.validation(validation_data) if validation_data is not None else None
    if here.is_evaluator:
        return evaluator.follow(here, trained, validation)
    training = data.training(x, y, sample_weight, class_weight, shuffle=shuffle)
    initial_values.begin(here.stage)  # the first exchange: after all errors that one task alone may have
    aside.tell(here.log)
    called = Callbacks(callbacks, trained, here, group, verbose)
    _remark(here, trained, called)
    course = data.epochs(training, x)
    alike.agree(group, course, validation, validates, alike.order_of(seed, shuffle, class_weight), called)
    here.shapes = lambda: building.shapes_of(model, training.spec())
    here.progress.report(state="starting", **({} if (total := course.total(0)) is None else {"totalSteps": total}))
    with initial_values.held():
        building.build(trained, training, group, here.traits, trains=True)
    engine = building.engine_of(trained, group, here.traits, called.watched)
    with trained.of_global_batch():
        history = FitLoop(here, engine, trained.state(group), called, course, validation, validates, scale_lr).fit()
    if save is not None:
        model_file.save(model, save)
    here.trained = True
    return history


def _remark(here: runtime.Runtime, trained: TrainedModel, callbacks: Callbacks) -> None:
    """Tell what of the model's compile() and of its callbacks is not done here, or not as Keras does it."""
    for name in callbacks.left_out:
        here.log(f"callbacks: {name} is left out: dtjob saves and resumes the run itself; set spec.checkpoint")
    if trained.jit_compile and not (here.traits.compiles or here.traits.tpu):
        here.log(f"jit_compile=True is left aside under {here.traits.name}: XLA compiles no sums over replicas")
    if trained.custom_train_step and here.strategy.num_replicas_in_sync > 1:
        here.log(trained.say_who_scales())
    for remark in (*callbacks.one_at_a_time, *trained.remarks()):
        here.warn(remark)
