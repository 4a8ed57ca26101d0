# SPDX-License-Identifier: Apache-2.0
"""Reports to the supervisor: JSON lines on DTJOB_PROGRESS_FD (contract.md). No TensorFlow here."""

import json
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from numbers import Real
from typing import Any

from dtjob_trainer.contract import pipes

INTERVAL_SECONDS = 0.3
"""Least time between two ordinary reports. Important events are reported at once."""
MOST_METRICS = 48
"""Limit for one block of metrics. The operator keeps 64 entries of such a block."""
LONGEST_NAME = 256
STEPS = ("step", "restoredStep", "totalSteps", "writing")
"""Keys that are numbers of steps. Reports count them over all stages of the program."""
PLACE = (*STEPS, "checkpoint", "epoch", "totalEpochs")
"""Keys that say where training is."""
LONGEST_MESSAGE = 4096
"""Characters. All of /status has at most 64 KiB."""


class Progress:
    """The status of this training process, reported key by key.

    Thread-safe, because the thread that writes checkpoints reports too. Without a file descriptor nothing is written,
    but `status` still has the last value of every key.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.status: dict[str, Any] = {}
        self.on_left_out: Callable[[Collection[str]], None] = lambda names: None
        """Called at every report with the names of metrics that it leaves out, if there are any."""
        self.steps_before = 0
        """Steps of the stages of the program that have ended: reports count on from them."""
        self.passes_over = False
        """Whether the present stage has ended before, and a later one is to go on: where it is says nothing then."""
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._pending: dict[str, Any] = {}
        self._last_written = 0.0
        self._stepped = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Progress":
        """Report to DTJOB_PROGRESS_FD. If it is not set, write no reports."""
        descriptor = environ.get(pipes.PROGRESS)
        return cls(int(descriptor) if descriptor else None)

    def report(self, **keys: Any) -> None:
        """Report `keys` now, together with those that `update` holds back."""
        with self._lock:
            self._pending.update(self._counted(keys))
            self._write()

    def update(self, **keys: Any) -> None:
        """Report `keys` when INTERVAL_SECONDS have passed since the last report. Until then later values replace them.

        The first step is reported at once: a failure before it may be an error of the program.
        """
        with self._lock:
            self._pending.update(keys := self._counted(keys))
            first, self._stepped = "step" in keys and not self._stepped, self._stepped or "step" in keys
            if first or time.monotonic() - self._last_written >= INTERVAL_SECONDS:
                self._write()

    def flush(self) -> None:
        """Report what `update` holds back, if INTERVAL_SECONDS have passed since the last report."""
        with self._lock:
            if self._pending and time.monotonic() - self._last_written >= INTERVAL_SECONDS:
                self._write()

    def begin_stage(self, number: int) -> None:
        """Note that the stage of this number (from 1) of the program begins."""
        self.passes_over = False
        if number > 1:
            self.report(stage=number)

    def _counted(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """`keys`, with steps counted over all stages."""
        if self.passes_over:
            return {key: value for key, value in keys.items() if key not in PLACE}
        before = self.steps_before
        if not before:
            return dict(keys)
        if "checkpoint" in keys:  # None: this stage has none yet, and the end of the one before stands
            keys = {**keys, "checkpoint": {"step": 0, **(keys["checkpoint"] or {})}}
            keys["checkpoint"]["step"] += before
        if keys.get("restoredStep") == 0 and "restoredStep" in self.status:  # begun by the process that ended that
            keys = {key: value for key, value in keys.items() if key not in ("restoredStep", "checkpoint")}
        return {key: value + before if key in STEPS and value is not None else value for key, value in keys.items()}

    def _write(self) -> None:
        self._last_written = time.monotonic()
        keys, left_out = bounded(self._pending)
        self._pending = {}
        if left_out:
            self.on_left_out(left_out)
        self.status.update(keys)
        if self._descriptor is None or not keys:
            return
        line = memoryview((json.dumps(keys, default=float) + "\n").encode())
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except BrokenPipeError:
            self._descriptor = None  # the supervisor has died, and PR_SET_PDEATHSIG ends this process


def bounded(keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys, with at most MOST_METRICS metrics in a block, and the names of the metrics that are left out."""
    kept = dict(keys)
    left_out: list[str] = []
    if "metrics" in kept:
        kept["metrics"], left_out = _first_of(kept["metrics"])
    evaluation = kept.get("evaluation")
    if evaluation is not None:
        metrics, more = _first_of(evaluation["metrics"])
        kept["evaluation"], left_out = {**evaluation, "metrics": metrics}, [*left_out, *more]
    if isinstance(kept.get("message"), str):
        kept["message"] = kept["message"][:LONGEST_MESSAGE]
    return kept, left_out


def _first_of(metrics: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    single = [name for name, value in metrics.items() if isinstance(value, Real) and len(name) <= LONGEST_NAME]
    kept = {name: metrics[name] for name in single[:MOST_METRICS]}
    return kept, [name for name in metrics if name not in kept]


class Pace:
    """The smoothed speed of training, and the share of its time in which steps wait for input."""

    def __init__(self) -> None:
        self._speed = 0.0
        self._waited: float | None = None

    def measured(self, steps_per_second: float, waited: float | None) -> None:
        """Take a new measurement of the speed (0: there is none), and of the share of time in waits (None: unknown)."""
        if steps_per_second:
            self._speed = 0.7 * self._speed + 0.3 * steps_per_second if self._speed else steps_per_second
        self._waited = None if waited is None else round(waited, 3)

    def keys(self, steps_left: int | None, batch: int | None) -> dict[str, float | None]:
        """What to report after a measurement. Empty before the first one of the speed.

        - steps_left, batch: the steps until the end, and the examples of a step; None if not known.
        """
        if not self._speed:
            return {}
        eta = {} if steps_left is None else {"etaSeconds": round(steps_left / self._speed, 1)}
        examples = {} if batch is None else {"examplesPerSecond": round(batch * self._speed, 2)}
        return {"stepsPerSecond": round(self._speed, 2), **eta, **examples, "inputWait": self._waited}
