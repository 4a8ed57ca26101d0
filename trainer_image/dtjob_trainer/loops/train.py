"""`train`: runs a step function of the program's own under the job's strategy, saves it and resumes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import keras
import numpy as np
import tensorflow as tf

from dtjob_trainer.checkpoint.saves import Saves
from dtjob_trainer.data.batches import Place
from dtjob_trainer.engines import choose
from dtjob_trainer.engines import feed as custom_data
from dtjob_trainer.engines.step_function import Steps, Values
from dtjob_trainer.errors import TrainError
from dtjob_trainer.loops.control import Control
from dtjob_trainer.models import optimizers
from dtjob_trainer.models.trackables import Trackables
from dtjob_trainer.process import runtime
from dtjob_trainer.process.progress import Pace
from dtjob_trainer.strategies.collective import Group
from dtjob_trainer.tensorboard.training import TrainingEvents

LOG_SECONDS = 10.0
"""Least time between two log lines."""


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
    here = runtime.current()
    task = here.task
    if here.began and task is not None and task.checkpoint is not None:
        raise TrainError(
            "train() is the second run of this program, but a job's checkpoints hold one; start a job for each"
        )
    if here.is_evaluator:
        raise TrainError("replicas.evaluator has nothing to evaluate in a custom loop; leave it out of the job")
    if not callable(step_fn):
        raise TrainError(f"step_fn must be a function of one batch, not a {type(step_fn).__name__}")
    if total_steps < 1:
        raise TrainError(f"total_steps={total_steps} must be at least 1")
    if task is not None and task.strategy == "TPU" and not isinstance(data, tf.distribute.DistributedDataset):
        raise TrainError(
            "data: under TPU a custom loop takes only what the strategy has distributed itself, in equal shares: "
            "dt.strategy().experimental_distribute_dataset(dataset.batch(SIZE, drop_remainder=True))"
        )
    here.began, here.trained = True, False
    asynchronous = task is not None and task.strategy == "ParameterServer"
    group = Group(here.strategy, task)
    place = Place(group.index, group.tasks, group.replicas, remote=asynchronous)
    here.progress.report(state="starting", totalSteps=total_steps)
    feed = custom_data.make(data, batch_size=batch_size, total_steps=total_steps, place=place, seed=seed)
    known = Trackables(variables, group)
    of_keras_3 = [each for each in known.optimizers if isinstance(each, keras.optimizers.Optimizer)]
    _check_optimizers(of_keras_3, asynchronous)
    steps = choose.steps(step_fn, feed, group, here.traits)
    synchronous = tf.distribute.has_strategy() and not asynchronous
    with optimizers.summing_first(list(filter(optimizers.acts_on_gradients, of_keras_3)) if synchronous else []):
        inexact = _inexact(feed, known, *steps.trace(), asynchronous=asynchronous)
        values = _Run(here, group, feed, steps, known, total_steps, inexact).run()
    here.trained = True
    return values


def _check_optimizers(found: Sequence[Any], asynchronous: bool) -> None:
    """Raise TrainError for an optimizer of Keras 3 that cannot be right under this strategy."""
    for each in found:
        for why in optimizers.limits(each, distributed=tf.distribute.has_strategy(), asynchronous=asynchronous):
            raise TrainError(f"variables: optimizer {each.name}: {why}")


def _inexact(
    feed: custom_data.Feed, known: Trackables, used: tuple[Any, ...], random: set[str], *, asynchronous: bool
) -> list[str]:
    """Why a restarted run would not have the same bits; `used` and `random` are what the step was seen to use."""
    reasons = []
    if asynchronous:
        reasons.append("ParameterServer is asynchronous")
    if not feed.exact:
        reasons.append("the data is shuffled, drawn at random or distributed by the program, so that it starts anew")
    if random:
        reasons.append(
            f"step_fn uses {', '.join(sorted(random))}, whose state nobody can save: use keras.random with "
            "a SeedGenerator in variables, or tf.random.stateless_…"
        )
    forgotten = known.not_among(used)
    if forgotten:
        reasons.append(f"step_fn uses {', '.join(forgotten)}, not in variables: lost in a restart")
    return reasons


class _Run:
    """One run of a custom loop; every task runs the same steps."""

    def __init__(
        self,
        here: runtime.Runtime,
        group: Group,
        feed: custom_data.Feed,
        steps: Steps,
        known: Trackables,
        total_steps: int,
        inexact: list[str],
    ) -> None:
        self._here, self._group, self._feed, self._steps = here, group, feed, steps
        self._total, self._inexact = total_steps, inexact
        self._state = known.state()
        self._saves = Saves(here, group, self._state)
        self._board = TrainingEvents(here, known.optimizers)
        self._step = 0
        self._saved: int | None = None
        self._pace = Pace()
        self._last_line = time.monotonic()
        self._values: Values = {}

    def run(self) -> Values:
        """Train to the end. Leaves by SystemExit where a stop was asked for."""
        here = self._here
        self._restore()
        exact = not self._inexact
        if here.task is not None and here.task.checkpoint is not None:
            for reason in self._inexact:
                here.log(f"resume is approximate: {reason}", level="warning", step=self._step)
        here.shutdown.training_begins()
        here.progress.report(
            state="training", step=self._step, totalSteps=self._total, resume="exact" if exact else "approximate"
        )
        control = Control(self._group, here.shutdown, self._saves.every_seconds, self._step)
        if self._step < self._total:
            for inputs in self._feed.inputs(self._step):
                self._train_step(inputs, control)
                if self._step == self._total:
                    break
            self._report(self._steps.values(), 0.0)
        here.progress.report(state="saving", step=self._step)
        if self._saved != self._step:
            self._save(control)
        self._saves.wait()
        self._board.close()
        here.shutdown.training_ends()
        self._state.average_local()
        self._group.leave_together()
        return self._values

    def _train_step(self, inputs: Any, control: Control) -> None:
        self._board.before(self._step, 1)
        self._steps.run(inputs)
        self._step += 1
        if self._board.after(self._step, 1, self._steps.values):
            self._board.step(self._step, self._summed(self._steps.values()))
        due = self._saves.due(self._step)
        if control.due(self._step):
            mine = self._steps.values()
            agreement = control.agree(self._step, mine.get("loss", 0.0))
            self._report(mine, agreement.steps_per_second)
            if agreement.stop:
                self._leave(control)
            due |= agreement.save
        if due and self._step < self._total:
            self._save(control)

    def _leave(self, control: Control) -> NoReturn:
        """Save at this step and end the process, after a stop that all tasks agreed on."""

        def save() -> None:
            self._save(control)
            self._board.close()

        self._saves.leave(self._step, save)

    def _report(self, mine: Values, steps_per_second: float) -> None:
        """Report what `step_fn` returned in the step just done, summed over all tasks. Collective."""
        self._values = self._summed(mine)
        keys = {"step": self._step, **self._pace.keys(steps_per_second, self._total - self._step)}
        if "loss" in self._values:
            keys["loss"] = self._values["loss"]
        self._here.progress.update(**keys, metrics=self._values)
        if self._step == self._total or time.monotonic() - self._last_line >= LOG_SECONDS:
            self._last_line = time.monotonic()
            self._here.log(f"step {self._step}/{self._total}", step=self._step, values=self._values)

    def _summed(self, mine: Values) -> Values:
        """What `step_fn` returned in every task, summed up. Collective."""
        names = list(mine)
        sums = self._group.sum(np.array([mine[name] for name in names], np.float64)) if names else np.empty(0)
        return dict(zip(names, sums.tolist(), strict=True))

    def _save(self, control: Control) -> None:
        """Save at this step, where the job has checkpoints. Collective."""
        control.saved()
        self._saved = self._step
        self._steps.wait()
        self._saves.write(self._step, lambda: {"exact": not self._inexact, "values": self._values})

    def _restore(self) -> None:
        """Go on from the chief's newest checkpoint, where there is one. Collective."""
        restored = self._saves.restore()
        if restored is None:
            return
        self._step = self._saved = restored.step
        self._values = restored.state.get("values", {})
        if not (restored.same_replicas and restored.state["exact"]):
            self._inexact.append("the checkpoint is of another number of replicas, or was not exact itself")
