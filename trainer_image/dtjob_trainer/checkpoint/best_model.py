# SPDX-License-Identifier: Apache-2.0
"""The best checkpoint so far: what the evaluator knows of it, and its model, which is kept as best.keras."""

import json
from collections.abc import Mapping
from typing import Any

from dtjob_trainer.checkpoint import model_file
from dtjob_trainer.checkpoint.directory import read_object, write_text
from dtjob_trainer.checkpoint.retention import value_of
from dtjob_trainer.contract.task import Task

MODEL, RECORD = "best.keras", "best.json"
TEMPORARY = ".best-saving.keras"


class BestModel:
    """Keeps the best model of a job's run, also over restarts of the evaluator."""

    def __init__(self, task: Task) -> None:
        assert task.checkpoint is not None
        self._directory, self._uid, self._evaluation = task.checkpoint.directory, task.uid, task.evaluation
        self.record: dict[str, Any] | None = self._read()
        """{"uid", "step", "metric", "value"} of the best checkpoint. None: there is none yet."""

    def offer(self, model: Any, step: int, metrics: Mapping[str, float]) -> bool:
        """Note `step` if it is the best, and keep its `model` if the job wants that. Returns whether it is the best.

        Raises BestModelError where `metrics` have no such metric.
        """
        metric = self._evaluation.best_metric
        if metric is None:
            return False
        value = value_of(metric, metrics, "evaluation.best.metric")
        if not self._evaluation.is_better(value, self.record["value"] if self.record else None):
            return False
        if self._evaluation.keep_model:
            model_file.write(model, f"{self._directory}/{MODEL}", f"{self._directory}/{TEMPORARY}")
        self.record = {"uid": self._uid, "step": step, "metric": metric, "value": value}
        write_text(f"{self._directory}/{RECORD}", json.dumps(self.record))
        return True

    def _read(self) -> dict[str, Any] | None:
        """The record of this job's run by this metric; another's best is nothing to compare with."""
        record = read_object(f"{self._directory}/{RECORD}") or {}
        same = (record.get("uid"), record.get("metric")) == (self._uid, self._evaluation.best_metric)
        return record if same else None
