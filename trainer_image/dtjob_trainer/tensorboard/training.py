# SPDX-License-Identifier: Apache-2.0
"""What training writes for TensorBoard where the job has `spec.tensorBoard`: scalars and a profile, of the chief."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.tensorboard.event_file import Events
from dtjob_trainer.tensorboard.profiler import Profiler

DIRECTORY = "events/train"
"""Where it all goes, below the checkpoint directory."""


class TrainingEvents:
    """The scalars and the profile of one run; does nothing where the job asks for none."""

    def __init__(self, here: Runtime, optimizers: Sequence[Any]) -> None:
        task = here.task
        asked = task.tensorboard if task is not None and task.checkpoint is not None else None
        directory = f"{task.checkpoint.directory}/{DIRECTORY}" if task is not None and task.checkpoint else ""
        self._every = asked.every_steps if asked is not None else None
        self._profiled = asked.profile if asked is not None else None
        self._events = Events(directory, here.warn) if asked is not None and here.is_chief else None
        self._profiler = Profiler(self._profiled if here.is_chief else None, directory, here.warn)
        self._before, self._optimizers = here.progress.steps_before, list(optimizers)
        self._last: tuple[int, float] | None = None
        """Step and time since which the speed is measured."""

    def left(self, done: int, wanted: int) -> int:
        """How many of the `wanted` steps after `done` may run in one call, as something is due between.

        The same in every task: calls that sum over tasks must have equally many steps.
        """
        next_scalars = self._every - done % self._every if self._every is not None else None
        profiled = self._profiled.left(done) if self._profiled is not None else None
        return min(each for each in (wanted, next_scalars, profiled) if each is not None)

    def before(self, done: int, count: int) -> None:
        """Call before `count` steps that run in one call, with `done` of the run behind them."""
        self._profiler.before(done, count)

    def after(self, done: int, count: int, wait: Callable[[], object]) -> bool:
        """Call after them; whether scalars of this step are due, in every task alike. `wait` waits for the steps."""
        self._profiler.after(done, wait)
        if self._last is None:
            self._last = done, time.monotonic()  # the first call traces, so that it tells nothing about speed
        return self._every is not None and done // self._every > (done - count) // self._every

    def step(self, done: int, values: Mapping[str, Any]) -> None:
        """Write `values` of the step just done, the learning rate and the speed since they were written last."""
        if self._events is None:
            return
        speed, now = {}, time.monotonic()
        if self._last is not None and done > self._last[0]:
            speed = {"steps_per_second": (done - self._last[0]) / max(now - self._last[1], 1e-6)}
        self._last = done, now
        self._events.scalars(self._before + done, {**numbers(values), **learning_rates(self._optimizers), **speed})

    def epoch(self, done: int, logs: Mapping[str, Any]) -> None:
        """Write an epoch's logs, at the step that ended it: `epoch_…`, but those of validation as they are, `val_…`."""
        if self._events is not None:
            named = {name if name.startswith("val_") else f"epoch_{name}": v for name, v in numbers(logs).items()}
            self._events.scalars(self._before + done, named)

    def close(self) -> None:
        """Write what is not written yet, before the process ends."""
        self._profiler.stop()


def number(value: Any) -> float | None:
    """`value` where it is a single number, also of NumPy or TensorFlow; else None."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 and array.dtype.kind in "biuf" else None


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Those of `values` that are single numbers."""
    return {name: found for name, value in values.items() if (found := number(value)) is not None}


def learning_rates(optimizers: Sequence[Any]) -> dict[str, float]:
    """The present learning rate of each optimizer, of Keras 3 or tf_keras; a schedule's is the one of the next step."""
    found = [optimizer for optimizer in optimizers if hasattr(optimizer, "learning_rate")]
    if len(found) == 1:
        return {"learning_rate": _learning_rate(found[0])}
    return {f"learning_rate/{number}-{each.name}": _learning_rate(each) for number, each in enumerate(found)}


def _learning_rate(optimizer: Any) -> float:
    rate = optimizer.learning_rate
    if callable(rate) and not hasattr(rate, "numpy"):  # tf_keras may give the schedule itself
        rate = rate(optimizer.iterations)
    return float(np.asarray(rate.numpy() if hasattr(rate, "numpy") else rate))
