# SPDX-License-Identifier: Apache-2.0
"""`train`: runs a step function of the program's own under the job's strategy, saves it and resumes it."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.data import sources
from dtjob_trainer.data.batches import Batch, Place, Source, Wanted
from dtjob_trainer.data.dataset import rows_of_each_batch
from dtjob_trainer.engines import exactness
from dtjob_trainer.engines.custom_step import CustomStep, check_results
from dtjob_trainer.errors import DataError, TrainError
from dtjob_trainer.loops import building
from dtjob_trainer.loops.loop import TrainLoop
from dtjob_trainer.models import initial_values, optimizers
from dtjob_trainer.models.trackables import Trackables
from dtjob_trainer.passes.epochs import Epochs
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

    source, rows = source_of(data, batch_size=batch_size, total_steps=total_steps, place=place, seed=seed)
    initial_values.begin(here.stage)  # the first exchange: after all errors that one task alone may have
    if source.remark:
        here.log(source.remark)
    known = Trackables(variables, group)
    of_keras_3 = [each for each in known.optimizers if isinstance(each, keras.optimizers.Optimizer)]
    for each in of_keras_3:
        for why in optimizers.limits(each, traits):
            raise TrainError(f"variables: optimizer {each.name}: {why}")
    of_replica = rows if rows is None or traits.asynchronous else rows // group.replicas
    step: Any = CustomStep(step_fn, of_replica)
    engine = building.engine_of(step, group, traits)
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
        inexact = [f"{traits.name} is asynchronous"] if traits.asynchronous else []
        inexact += [] if source.exact else [source.inexact]
        seeds, lost = "a SeedGenerator in variables", "not in variables: lost in a restart"
        inexact += exactness.of_step(traced, "step_fn", seeds, known.state().not_among, lost)
        _warn_of_tables(here, unknown, group)
        of_task = rows // group.tasks if rows is not None else None
        values = TrainLoop(here, engine, known, passes(source, group, here), total_steps, inexact, of_task).train()
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


def passes(source: Source, group: Group, here: runtime.Runtime) -> Epochs:
    """Passes over `source`, one after another, as many as the loop takes."""
    warn = functools.cache(here.warn)
    return Epochs(source, group, steps=None, epochs=sys.maxsize, when_out="end the epoch", tell=warn, endless=True)


def source_of(
    data: Any, *, batch_size: int | None, total_steps: int, place: Place, seed: int
) -> tuple[Source, int | None]:
    """The source of what `train` was given as `data`, and the examples of all replicas at each step.

    The number is None where it may change, which one replica alone allows. Raises DataError for data that cannot be
    trained on as asked.
    """
    if isinstance(data, tf.distribute.DistributedDataset):
        if place.remote:
            raise DataError(
                "data: under ParameterServer the chief hands out the examples; give arrays, a tf.data.Dataset or a "
                "data function, not a distributed dataset"
            )
        if batch_size is not None:
            raise DataError("data: a distributed dataset brings its own batches; leave out batch_size")
        return DistributedSource(data), None
    wanted = Wanted("data", "total_steps", batch_size, seed=seed, shuffle=True, drop_last=True, endless=True)
    if isinstance(data, tf.data.Dataset):
        rows = rows_of_each_batch(data)
        if place.replicas > 1 and (rows is None or rows % place.replicas):
            raise DataError(
                f"data: with {place.replicas} replicas each batch must have the same number of examples, a multiple of "
                f"{place.replicas}; use .batch(SIZE, drop_remainder=True)"
            )
        if int(data.cardinality()) < 0:  # one pass without an end
            data, wanted = data.repeat(), replace(wanted, steps=total_steps)
        return sources.make(data, None, None, wanted, place), rows
    if sources.is_batched(data):
        raise DataError(
            f"data: a {type(data).__name__} is for fit alone; give arrays, a batched tf.data.Dataset "
            "(tf.data.Dataset.from_generator makes one) or a data function"
        )
    size = batch_size if batch_size is not None else sources.DEFAULT_BATCH_SIZE
    if size % place.replicas:
        raise DataError(
            f"batch_size={size} is the size of the global batch and must be a multiple of the number of replicas, "
            f"{place.replicas}: in a custom loop all get equally many examples"
        )
    return sources.make(data, None, None, wanted, place), size


class DistributedSource(Source):
    """A dataset that the program has distributed by the strategy's own methods. It starts anew after a restart."""

    steps = None
    may_be_empty = False
    inexact = "the program has distributed the data itself, so that it starts anew"
    argument, distributed = "data", True

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def epoch(self, number: int, first_step: int) -> Iterator[Batch]:
        """All elements, whatever `first_step` is."""
        return (Batch((element,), 0, 0) for element in self._dataset)

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """An element as it is, in place of x."""
        return inputs[0], None, None

    def input_spec(self) -> tuple[Any, ...]:
        """Of distributed values."""
        return (self._dataset.element_spec,)
