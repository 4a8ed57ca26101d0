# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.best_model: what is known of the best model over restarts of the evaluator."""

import json
from pathlib import Path

import pytest

from dtjob_trainer.checkpoint.best_model import MODEL, RECORD, TEMPORARY, BestModel
from dtjob_trainer.contract.settings import Checkpoint, Evaluation
from dtjob_trainer.contract.task import Task


class Model:
    """One that can be saved."""

    def save(self, path: str) -> None:
        Path(path).write_text("a model")


def best_in(directory: Path, *, keep_model: bool = True) -> BestModel:
    evaluation = Evaluation(best_metric="accuracy", best_is_highest=True, keep_model=keep_model)
    checkpoint = Checkpoint(str(directory))
    return BestModel(Task("test", "default", "uid", "evaluator", 0, checkpoint=checkpoint, evaluation=evaluation))


def test_the_best_is_known_after_a_restart(tmp_path: Path, flushed: list[str]) -> None:
    assert best_in(tmp_path).offer(Model(), 5, {"accuracy": 0.5})
    assert flushed == [TEMPORARY, f"{RECORD}.tmp"], "each is on disk before it has its name"
    again = best_in(tmp_path)
    assert again.record == {"uid": "uid", "step": 5, "metric": "accuracy", "value": 0.5}
    assert not again.offer(Model(), 10, {"accuracy": 0.4})


@pytest.mark.parametrize("content", ["", '{"uid": "uid", "st', "[]", json.dumps({"uid": "another", "value": 1.0})])
def test_a_record_that_is_not_of_this_run_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / RECORD).write_text(content)
    best = best_in(tmp_path)
    assert best.record is None
    assert best.offer(Model(), 5, {"accuracy": 0.5})
    assert (tmp_path / MODEL).read_text() == "a model"
    assert json.loads((tmp_path / RECORD).read_text())["step"] == 5


def test_the_best_is_known_without_a_model_that_is_kept(tmp_path: Path) -> None:
    best = best_in(tmp_path, keep_model=False)
    assert best.offer(Model(), 5, {"accuracy": 0.5})
    assert (best.record or {})["step"] == 5
    assert not (tmp_path / MODEL).exists()
