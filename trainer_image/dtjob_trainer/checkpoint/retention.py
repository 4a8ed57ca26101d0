# SPDX-License-Identifier: Apache-2.0
"""What is kept beside the newest checkpoints: some for their step, the best by a metric, and the best one's model.

The evaluator knows which are the best. It tells the chief by RECORD which checkpoints to keep, and writes the model.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dtjob_trainer.checkpoint import model_file
from dtjob_trainer.checkpoint.directory import read_object, steps_in, write_text
from dtjob_trainer.contract.settings import Checkpoint, KeepBest
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import BestModelError

RECORD = "kept.json"
"""What the evaluator tells the chief: {"uid", "metric", "evaluating": step or null, "best": {step: value}}."""
MODEL, BEST = "best.keras", "best.json"
"""The model of the best checkpoint, and {"uid", "step", "metric", "value"} of that."""
TEMPORARY = ".best-saving.keras"


def kept(uid: str, settings: Checkpoint, steps: Sequence[int]) -> set[int]:
    """Those checkpoints of job `uid` (of `steps`, oldest first) that the chief keeps also when they are old."""
    found: set[int] = set()
    if settings.keep_every_steps is not None:
        found |= for_their_step(steps, settings.keep_every_steps)
    if settings.keep_best is not None:
        record = _record_of(f"{settings.directory}/{RECORD}", uid, settings.keep_best)
        found |= {step for step in steps if step == record.get("evaluating") or step in _values_of(record)}
    return found


def for_their_step(steps: Sequence[int], every: int) -> set[int]:
    """The first of these checkpoints (oldest first) at or after each multiple of `every` steps."""
    firsts: dict[int, int] = {}
    for step in steps:
        firsts.setdefault(step // every, step)
    return {step for multiple, step in firsts.items() if multiple}


class BestCheckpoints:
    """What the evaluator tells the chief to keep. Without checkpoint.keepBest it tells nothing."""

    def __init__(self, uid: str, settings: Checkpoint) -> None:
        """`uid`: of the job."""
        self._uid, self._directory, self._asked = uid, settings.directory, settings.keep_best
        self._path = f"{settings.directory}/{RECORD}"
        self._best = _values_of(_record_of(self._path, uid, self._asked)) if self._asked else {}

    def begin(self, step: int) -> None:
        """Keep checkpoint `step` while it is evaluated: newer ones may be written meanwhile."""
        self._write(step)

    def offer(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Keep checkpoint `step` where it is among the best; whether it is.

        Raises BestModelError where `metrics` have no such metric.
        """
        if self._asked is None:
            return False
        there = set(steps_in(self._directory))  # one that somebody has removed takes no place
        values = {**self._best, step: _value_of(self._asked, metrics)}
        self._best = self._asked.best_of({each: value for each, value in values.items() if each in there})
        self._write(None)
        return step in self._best

    def _write(self, evaluating: int | None) -> None:
        if self._asked is not None:
            record = {"uid": self._uid, "metric": self._asked.metric, "evaluating": evaluating, "best": self._best}
            write_text(self._path, json.dumps(record))


class BestModel:
    """Keeps the best model of a job's run, also over restarts of the evaluator."""

    def __init__(self, task: Task) -> None:
        assert task.checkpoint is not None
        self._directory, self._uid, self._evaluation = task.checkpoint.directory, task.uid, task.evaluation
        self.record: dict[str, Any] = {}
        """{"uid", "step", "metric", "value"} of the best checkpoint. Empty: there is none yet."""
        if task.evaluation.best is not None:
            self.record = _record_of(f"{self._directory}/{BEST}", task.uid, task.evaluation.best)

    def offer(self, model: Any, step: int, metrics: Mapping[str, float]) -> bool:
        """Note `step` if it is the best, and keep its `model` if the job wants that. Returns whether it is the best.

        Raises BestModelError where `metrics` have no such metric.
        """
        asked = self._evaluation.best
        if asked is None or not asked.is_better(value := _value_of(asked, metrics), self.record.get("value")):
            return False
        if self._evaluation.keep_model:
            model_file.write(model, f"{self._directory}/{MODEL}", f"{self._directory}/{TEMPORARY}")
        self.record = {"uid": self._uid, "step": step, "metric": asked.metric, "value": value}
        write_text(f"{self._directory}/{BEST}", json.dumps(self.record))
        return True


def _value_of(asked: KeepBest, metrics: Mapping[str, float]) -> float:
    if asked.metric not in metrics:
        raise BestModelError(
            f"evaluation.best.metric {asked.metric!r} is none of the model's; give one of {', '.join(metrics)}"
        )
    return metrics[asked.metric]


def _record_of(path: str, uid: str, asked: KeepBest) -> dict[str, Any]:
    """The record at `path`. It is empty if there is none, or if it is of another job or another metric."""
    record = read_object(path) or {}
    return record if (record.get("uid"), record.get("metric")) == (uid, asked.metric) else {}


def _values_of(record: Mapping[str, Any]) -> dict[int, float]:
    return {int(step): value for step, value in record.get("best", {}).items()}
