# SPDX-License-Identifier: Apache-2.0
"""`train`: runs a step function of the program's own under the job's strategy, saves it and resumes it."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data.batches import Place
from dtjob_trainer.engines import choose, exactness
from dtjob_trainer.engines.custom_step import check_results
from dtjob_trainer.errors import TrainError
from dtjob_trainer.loops import train_data
from dtjob_trainer.loops.loop import TrainLoop
from dtjob_trainer.models import initial_values, optimizers
from dtjob_trainer.models.trackables import Trackables
from dtjob_trainer.process import runtime
from dtjob_trainer.steps import optimizer_steps
from dtjob_trainer.strategies.collective import Group


@runtime.may_be_cut_off
def train(
    step_fn: Callable[[Any], Any],
    data: Any,
    *,
    variables: Any,
    total_steps: int,
    batch_size: int | None = None,
    seed: int = runtime.SEED,
) -> dict[str, float]:
    """Run `step_fn` until `total_steps` steps are done; returns what the last step returned, the same in every task.

    - step_fn(batch): one step of one replica, as inside `strategy.run`: computes gradients and applies them. Gradients
      are summed over the replicas, so divide a loss by the size of the global batch. It may return a scalar loss or a
      dict of scalars: this replica's part, for they are summed as well. It is traced once. Where one of Keras 3's
      optimizers clips or accumulates gradients, or scales the loss, it does that with the sums, as on one device.
    - data: arrays (in any structure of tuples and dicts; a pandas Series is a column), of which `batch` has the same
      structure; or a batched `tf.data.Dataset` whose elements are global batches; or a function of DataContext that
      returns this shard's unbatched Dataset; or what the strategy's own `distribute_…` methods return. It is passed
      over again and again; of arrays and functions the last batch of a pass is dropped unless it is full.
    - variables: all that `step_fn` changes: models, optimizers, metrics, seed generators, variables, or dicts and lists
      of them. They must have been built. This is what a checkpoint keeps.
    - total_steps: steps of the whole run, restarts included.
    - batch_size: examples of one step of all replicas together (32 where it is left out).
    - seed: seed of the order of the data.

    With `spec.checkpoint` the run is saved as it goes on and resumes where it was: with the same bits under the
    synchronous strategies on CPU, unless the log says why not. Raises TrainError, DataError, VariablesError or
    StepError, before any step, for what cannot be right.
    """
    here = runtime.under_strategy()
    traits = here.traits
    _check(here, step_fn, data, total_steps)
    here.begin_stage()
    group = Group(here.strategy, here.task)
    place = Place(group.index, group.tasks, group.replicas, remote=traits.asynchronous)
    here.progress.report(state="starting", totalSteps=total_steps)

    source, rows = train_data.make(data, batch_size=batch_size, total_steps=total_steps, place=place, seed=seed)
    initial_values.begin(here.stage)  # the first exchange: after all errors that one task alone may have
    if source.remark:
        here.log(source.remark)
    known = Trackables(variables, group)
    of_keras_3 = [each for each in known.optimizers if isinstance(each, keras.optimizers.Optimizer)]
    for each in of_keras_3:
        for why in optimizers.limits(each, traits):
            raise TrainError(f"variables: optimizer {each.name}: {why}")
    engine = choose.custom_engine(step_fn, rows, group, traits)
    unknown: list[str] = []

    def on_unknown(table: Any) -> None:
        unknown.append(getattr(table, "path", table.name))

    with contextlib.ExitStack() as stack:
        stack.enter_context(optimizer_steps.of_all_replicas(of_keras_3, traits, on_unknown))
        if len(of_keras_3) < len(known.optimizers) and traits.synchronous and traits.distributed:
            from dtjob_trainer.steps import tf_keras_steps

            stack.enter_context(tf_keras_steps.sums_of_one_device(on_unknown))
        traced = engine.traced(source)
        check_results(traced)
        inexact = exactness.of_custom_step(traced, source, known, traits)
        _warn_of_tables(here, unknown, group)
        epochs = train_data.epochs_of(source, group, here)
        rows = rows // group.tasks if rows is not None else None
        values = TrainLoop(here, engine, known, epochs, total_steps, inexact, rows).train()
    here.trained = True
    return values


def _warn_of_tables(here: runtime.Runtime, unknown: Sequence[str], group: Group) -> None:
    """Name the tables of which it is not known whether rows are looked up for each row or once for all rows."""
    if unknown and group.replicas > 1:
        here.warn(
            f"step_fn: how rows are looked up in {', '.join(dict.fromkeys(unknown))} cannot be told, so optimizers "
            "other than SGD may train it otherwise than one device; look up what is alike for all rows once, as with "
            "tf.range(length), and outside of functions of its own"
        )


def _check(here: runtime.Runtime, step_fn: Any, data: Any, total_steps: int) -> None:
    """Raise TrainError for what cannot be right, as far as the arguments alone tell."""
    if here.is_evaluator:
        raise TrainError("replicaSpecs.evaluator has nothing to evaluate in a custom loop; leave it out of the job")
    if not callable(step_fn):
        raise TrainError(f"step_fn must be a function of one batch, not a {type(step_fn).__name__}")
    if total_steps < 1:
        raise TrainError(f"total_steps={total_steps} must be at least 1")
    if here.traits.tpu and not isinstance(data, tf.distribute.DistributedDataset):
        raise TrainError(
            "data: under TPU a custom loop takes only what the strategy has distributed itself, in equal shares: "
            "dt.strategy().experimental_distribute_dataset(dataset.batch(SIZE, drop_remainder=True))"
        )
