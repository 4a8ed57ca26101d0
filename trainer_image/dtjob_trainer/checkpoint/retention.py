# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints are kept beside the newest: some for their step, and the best by a metric of the evaluator."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dtjob_trainer.checkpoint.directory import read_object, steps_in, write_text
from dtjob_trainer.contract.settings import Checkpoint
from dtjob_trainer.errors import BestModelError

RECORD = "kept.json"
"""What the evaluator tells the chief: {"uid", "metric", "evaluating": step or null, "best": {step: value}}."""


def for_their_step(steps: Sequence[int], every: int) -> set[int]:
    """The first of these checkpoints (oldest first) at or after each multiple of `every` steps."""
    firsts: dict[int, int] = {}
    for step in steps:
        firsts.setdefault(step // every, step)
    return {step for multiple, step in firsts.items() if multiple}


class Retention:
    """What the chief keeps of its job's checkpoints beside the newest."""

    def __init__(self, uid: str, settings: Checkpoint) -> None:
        """`uid`: of the job."""
        self._uid, self._settings = uid, settings

    def kept(self, steps: Sequence[int]) -> set[int]:
        """Those of these checkpoints (oldest first) that are kept also when they are old. Reads the record."""
        kept: set[int] = set()
        if self._settings.keep_every_steps is not None:
            kept |= for_their_step(steps, self._settings.keep_every_steps)
        if self._settings.keep_best is not None:
            record = _record_of(self._uid, self._settings)
            kept |= {step for step in steps if step == record.get("evaluating") or step in _values_of(record)}
        return kept


class BestCheckpoints:
    """What the evaluator tells the chief to keep. Without checkpoint.keepBest it tells nothing."""

    def __init__(self, uid: str, settings: Checkpoint) -> None:
        """`uid`: of the job."""
        self._uid, self._directory, self._asked = uid, settings.directory, settings.keep_best
        self._best = _values_of(_record_of(uid, settings)) if self._asked else {}

    def begin(self, step: int) -> None:
        """Keep checkpoint `step` while it is evaluated: newer ones may be written meanwhile."""
        if self._asked:
            self._write(step)

    def offer(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Keep checkpoint `step` where it is among the best; whether it is.

        Raises BestModelError where `metrics` have no such metric.
        """
        if self._asked is None:
            return False
        value = value_of(self._asked.metric, metrics, "evaluation.best.metric")
        there = set(steps_in(self._directory))  # one that somebody has removed takes no place
        values = {each: known for each, known in {**self._best, step: value}.items() if each in there}
        self._best = self._asked.best_of(values)
        self._write(None)
        return step in self._best

    def _write(self, evaluating: int | None) -> None:
        assert self._asked is not None
        record = {"uid": self._uid, "metric": self._asked.metric, "evaluating": evaluating, "best": self._best}
        write_text(f"{self._directory}/{RECORD}", json.dumps(record))


def value_of(metric: str, metrics: Mapping[str, float], field: str) -> float:
    """The value of the metric that `field` of the manifest names. Raises BestModelError if there is none."""
    if metric not in metrics:
        raise BestModelError(f"{field} {metric!r} is none of the model's; give one of {', '.join(metrics)}")
    return metrics[metric]


def _record_of(uid: str, settings: Checkpoint) -> dict[str, Any]:
    """The record of this job's run by this metric; empty where there is none."""
    assert settings.keep_best is not None
    record = read_object(f"{settings.directory}/{RECORD}") or {}
    same = (record.get("uid"), record.get("metric")) == (uid, settings.keep_best.metric)
    return record if same else {}


def _values_of(record: Mapping[str, Any]) -> dict[int, float]:
    return {int(step): value for step, value in record.get("best", {}).items()}
