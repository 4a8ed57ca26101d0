# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.retention: which old checkpoints stay, and what the evaluator and the chief agree on."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint.directory import steps_in
from dtjob_trainer.checkpoint.retention import (
    BEST,
    MODEL,
    RECORD,
    BestCheckpoints,
    BestModel,
    for_their_step,
    kept,
)
from dtjob_trainer.checkpoint.writer import Writer
from dtjob_trainer.contract.settings import Checkpoint, Evaluation, KeepBest
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import BestModelError

HIGHEST = KeepBest("accuracy", is_highest=True, count=2)


def task(directory: Path, uid: str = "uid", **settings: Any) -> Task:
    return Task("test", "default", uid, "chief", 0, checkpoint=Checkpoint(str(directory), **settings))


def best_of(job: Task) -> BestCheckpoints:
    assert job.checkpoint is not None
    return BestCheckpoints(job.uid, job.checkpoint)


def kept_of(job: Task, steps: list[int]) -> set[int]:
    assert job.checkpoint is not None
    return kept(job.uid, job.checkpoint, steps)


def save(chief: Writer, *steps: int) -> list[int]:
    """The steps of all checkpoints once these have been saved."""
    for step in steps:
        chief.write(step, {"v": tf.constant(1.0)}, {})
        chief.wait()
    return steps_in(chief.settings.directory)


def chief_of(task: Task) -> Writer:
    assert task.checkpoint is not None
    return Writer(task, task.checkpoint, lambda **_: None, lambda *_, **__: None)


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([], set()),
        ([50, 99], set()),
        ([100, 150, 200, 250], {100, 200}),
        ([40, 130, 170, 180, 320, 390], {130, 320}),  # of saves by time, and none in the two hundreds
    ],
)
def test_the_first_checkpoint_at_or_after_each_multiple_is_kept(steps: list[int], kept: set[int]) -> None:
    assert for_their_step(steps, 100) == kept


def test_checkpoints_kept_for_their_step_outlive_the_newest(tmp_path: Path) -> None:
    chief = chief_of(task(tmp_path, max_to_keep=2, keep_every_steps=20))
    assert save(chief, *range(5, 60, 5)) == [20, 40, 50, 55]
    assert tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths[0] == str(tmp_path / "ckpt-20")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "ckpt-55")


def test_the_best_and_the_one_that_is_evaluated_outlive_the_newest(tmp_path: Path) -> None:
    job = task(tmp_path, max_to_keep=1, keep_best=HIGHEST)
    chief, evaluator = chief_of(job), best_of(job)
    save(chief, 5)
    evaluator.begin(5)
    assert save(chief, 10) == [5, 10]
    assert evaluator.offer(5, {"accuracy": 0.5})
    for step, value, among_the_best in ((10, 0.7, True), (15, 0.6, True), (20, 0.5, False), (25, math.nan, False)):
        save(chief, step)
        evaluator.begin(step)
        assert evaluator.offer(step, {"accuracy": value}) == among_the_best
    assert save(chief, 30) == [10, 15, 30]


def test_an_evaluator_that_starts_again_knows_what_is_kept(tmp_path: Path) -> None:
    job = task(tmp_path, max_to_keep=9, keep_best=HIGHEST)
    save(chief_of(job), 5, 10, 15)
    first = best_of(job)
    first.offer(5, {"accuracy": 0.5})
    first.offer(10, {"accuracy": 0.7})
    again = best_of(job)
    assert not again.offer(15, {"accuracy": 0.4})
    assert kept_of(job, [5, 10, 15]) == {5, 10}


def test_a_checkpoint_that_is_gone_takes_no_place_of_another(tmp_path: Path) -> None:
    job = task(tmp_path, max_to_keep=9, keep_best=HIGHEST)
    save(chief_of(job), 5, 10, 15)
    evaluator = best_of(job)
    evaluator.offer(5, {"accuracy": 0.9})
    evaluator.offer(10, {"accuracy": 0.7})
    for path in tmp_path.glob("ckpt-5.*"):
        path.unlink()
    assert evaluator.offer(15, {"accuracy": 0.4})
    assert kept_of(job, [10, 15]) == {10, 15}


@pytest.mark.parametrize(
    "record",
    [
        "",
        '{"uid": "ui',
        "[]",
        json.dumps({"uid": "another", "metric": "accuracy", "evaluating": 5, "best": {"10": 1.0}}),
    ],
)
def test_a_record_of_another_job_or_an_unreadable_one_keeps_no_checkpoint(tmp_path: Path, record: str) -> None:
    (tmp_path / RECORD).write_text(record)
    assert kept_of(task(tmp_path, keep_best=HIGHEST), [5, 10]) == set()


def test_a_job_that_keeps_none_for_its_metric_writes_no_record(tmp_path: Path) -> None:
    evaluator = best_of(task(tmp_path))
    evaluator.begin(5)
    assert not evaluator.offer(5, {"accuracy": 0.5})
    assert not (tmp_path / RECORD).exists()


def test_a_metric_that_the_model_has_not_is_named(tmp_path: Path) -> None:
    evaluator = best_of(task(tmp_path, keep_best=KeepBest("recall", is_highest=True)))
    with pytest.raises(BestModelError, match=r"evaluation.best.metric 'recall' is none .*; give one of loss"):
        evaluator.offer(5, {"loss": 0.5})


class Model:
    """One that can be saved."""

    def save(self, path: str) -> None:
        Path(path).write_text("a model")


def best_in(directory: Path, *, keep_model: bool = True) -> BestModel:
    evaluation = Evaluation(best=HIGHEST, keep_model=keep_model)
    checkpoint = Checkpoint(str(directory))
    return BestModel(Task("test", "default", "uid", "evaluator", 0, checkpoint=checkpoint, evaluation=evaluation))


def test_the_best_is_known_after_a_restart(tmp_path: Path) -> None:
    assert best_in(tmp_path).offer(Model(), 5, {"accuracy": 0.5})
    again = best_in(tmp_path)
    assert again.record == {"uid": "uid", "step": 5, "metric": "accuracy", "value": 0.5}
    assert not again.offer(Model(), 10, {"accuracy": 0.4})


@pytest.mark.parametrize("content", ["", '{"uid": "uid", "st', "[]", json.dumps({"uid": "another", "value": 1.0})])
def test_a_record_that_is_not_of_this_run_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / BEST).write_text(content)
    best = best_in(tmp_path)
    assert not best.record
    assert best.offer(Model(), 5, {"accuracy": 0.5})
    assert (tmp_path / MODEL).read_text() == "a model"
    assert json.loads((tmp_path / BEST).read_text())["step"] == 5


def test_the_best_is_known_without_a_model_that_is_kept(tmp_path: Path) -> None:
    best = best_in(tmp_path, keep_model=False)
    assert best.offer(Model(), 5, {"accuracy": 0.5})
    assert best.record["step"] == 5
    assert not (tmp_path / MODEL).exists()
