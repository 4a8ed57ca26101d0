# SPDX-License-Identifier: Apache-2.0
"""The blocks of the manifest that a task gets as JSON: spec.checkpoint, spec.evaluation and spec.tensorBoard."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from dtjob_trainer.errors import TaskError

DEFAULT_EVERY_SECONDS, DEFAULT_MAX_TO_KEEP, DEFAULT_SAVE_TIMEOUT_SECONDS = 300, 3, 60
"""The schema's defaults of checkpoint.everySeconds, checkpoint.maxToKeep and checkpoint.saveTimeoutSeconds."""

EPOCH_SAVES_APART_SECONDS = 30.0
"""Least time between a save and the next one at an epoch's end, if checkpoint.everyEpochs is left out."""

DEFAULT_SCALARS_EVERY, DEFAULT_PROFILED_STEPS = 100, 5
"""The schema's defaults of tensorBoard.everySteps and tensorBoard.profile.steps."""

WriteMode = Literal["Async", "Sync"]
"""Async: training goes on while a checkpoint is written. Sync: training waits until it is written."""


@dataclass(frozen=True)
class KeepBest:
    """`spec.checkpoint.keepBest` and `spec.evaluation.best`: how many checkpoints are kept for which metric."""

    metric: str
    is_highest: bool
    """Whether the highest values are the best."""
    count: int = 1

    @classmethod
    def of(cls, block: Mapping[str, Any] | None) -> "KeepBest | None":
        """Read a block; None if there is none."""
        return cls(block["metric"], block["mode"] == "Max", block.get("count", 1)) if block else None

    def best_of(self, values: Mapping[int, float]) -> dict[int, float]:
        """The best of these values by step. Of equal values the earlier steps are better, and NaN is never good."""
        steps = [step for step, value in values.items() if not math.isnan(value)]
        steps.sort(key=lambda step: (-values[step] if self.is_highest else values[step], step))
        return {step: values[step] for step in sorted(steps[: self.count])}

    def is_better(self, value: float, best: float | None) -> bool:
        """Whether a metric's `value` is better than the `best` so far (None: there is none). NaN is never better."""
        if math.isnan(value) or best is None:
            return best is None and not math.isnan(value)
        return value > best if self.is_highest else value < best


@dataclass(frozen=True)
class Checkpoint:
    """`spec.checkpoint`: where and how often training is saved."""

    directory: str
    """The path or URI of the checkpoints: from checkpoint.storage."""
    every_epochs: int | None = None
    """Save each time this many epochs have ended; 0: never by epochs. None: save at the end of each epoch that ends
    EPOCH_SAVES_APART_SECONDS or more after the last save."""
    every_steps: int | None = None
    """Save each time this many steps were trained; None: never by steps."""
    every_seconds: float = DEFAULT_EVERY_SECONDS
    """Save when this much time has passed since the last save; 0: never by time."""
    max_to_keep: int = DEFAULT_MAX_TO_KEEP
    write_mode: WriteMode = "Async"
    save_timeout_seconds: float = DEFAULT_SAVE_TIMEOUT_SECONDS
    keep_every_steps: int | None = None
    """Also keep the first checkpoint at or after each multiple of this many steps; None: none for its step."""
    keep_best: KeepBest | None = None
    """Also keep the best of the evaluated checkpoints; None: none for its metric."""

    def of_stage(self, number: int) -> "Checkpoint":
        """The settings of the program's stage of this number (from 1): each but the first has a directory below."""
        return self if number == 1 else replace(self, directory=f"{self.directory}/stage-{number}")

    @classmethod
    def from_json(cls, text: str) -> "Checkpoint":
        """Read the value of DTJOB_CHECKPOINT. Raises TaskError if it has no directory."""
        value = json_object("DTJOB_CHECKPOINT", text)
        directory = value.get("directory")
        if not isinstance(directory, str) or not directory:
            raise TaskError("DTJOB_CHECKPOINT has no 'directory'; give the path where checkpoints are kept")
        return cls(
            directory=directory.rstrip("/") or "/",  # gs://b/a//ckpt-5 is not what gs://b/a/ lists
            every_epochs=value.get("everyEpochs"),
            every_steps=value.get("everySteps"),
            every_seconds=value.get("everySeconds", cls.every_seconds),
            max_to_keep=value.get("maxToKeep", cls.max_to_keep),
            write_mode=value.get("writeMode", cls.write_mode),
            save_timeout_seconds=float(value.get("saveTimeoutSeconds", cls.save_timeout_seconds)),
            keep_every_steps=value.get("keepEverySteps"),
            keep_best=KeepBest.of(value.get("keepBest")),
        )


@dataclass(frozen=True)
class Evaluation:
    """`spec.evaluation`: what the evaluator does."""

    every: bool = False
    """Whether to evaluate every checkpoint. Otherwise only the latest is evaluated."""
    best: KeepBest | None = None
    """What decides which checkpoint is the best. None: they are not compared."""
    keep_model: bool = True
    """Whether the model of the best checkpoint is kept."""

    @classmethod
    def from_json(cls, text: str) -> "Evaluation":
        """Read the value of DTJOB_EVALUATION."""
        value = json_object("DTJOB_EVALUATION", text)
        best = value.get("best") or {}
        return cls(value.get("checkpoints") == "Every", KeepBest.of(best), best.get("keepModel", True))


@dataclass(frozen=True)
class ProfiledSteps:
    """`spec.tensorBoard.profile`: which steps to profile, counted from 1."""

    first_step: int
    steps: int

    @property
    def last_step(self) -> int:
        """The last step to profile."""
        return self.first_step + self.steps - 1

    def begins(self, done: int, count: int) -> bool:
        """Whether a step to profile is among the next `count` steps, after `done` steps of the run."""
        return done < self.last_step and done + count >= self.first_step

    def left(self, done: int) -> int | None:
        """How many steps may run in one call after `done`: those up to the first profiled one, and then one by one, as
        each has a mark of its own in the profile. None: any number."""
        if done >= self.last_step:
            return None
        return max(self.first_step - 1 - done, 1)


@dataclass(frozen=True)
class TensorBoard:
    """`spec.tensorBoard`: what training writes for TensorBoard."""

    every_steps: int = DEFAULT_SCALARS_EVERY
    profile: ProfiledSteps | None = None

    @classmethod
    def from_json(cls, text: str) -> "TensorBoard":
        """Read the value of DTJOB_TENSORBOARD."""
        value = json_object("DTJOB_TENSORBOARD", text)
        profile = value.get("profile")
        asked = profile and ProfiledSteps(profile["firstStep"], profile.get("steps", DEFAULT_PROFILED_STEPS))
        return cls(value.get("everySteps", DEFAULT_SCALARS_EVERY), asked)


def json_object(variable: str, text: str) -> dict[str, Any]:
    """The JSON object in `text`, the value of `variable`. Raises TaskError, which names it, if it is not an object."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TaskError(f"{variable} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise TaskError(f"{variable} must be a JSON object, not {text!r}")
    return value
