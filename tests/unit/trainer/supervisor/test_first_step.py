# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.first_step: whether a step was done, and what is left for the kubelet until then."""

import json
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor.first_step import FirstStep


def first_step(log: Path | str = "", role: str = "worker", strategy: str = "Mirrored") -> FirstStep:
    return FirstStep(Task("j", "default", "u", role, 1, 2, strategy=strategy, termination_log=str(log)))


@pytest.mark.parametrize(
    ("reports", "done"),
    [
        ([], False),
        ([{"state": "training", "step": 0}], False),
        ([{"restoredStep": 0}, {"step": 0}, {"step": 1}], True),
        ([{"step": 80, "restoredStep": 80}, {"state": "training", "step": 80}], False),
        ([{"step": 80, "restoredStep": 80}, {"step": 81}], True),
        ([{"trainsItself": True}], None),
        ([{"trainsItself": True}, {"restoredStep": 0, "state": "training"}, {"step": 1}], True),
        ([{"step": 1}, {"trainsItself": True}], True),
        ([{"step": "many"}], False),
    ],
)
def test_a_step_that_was_restored_is_none(reports: list[dict[str, Any]], done: bool | None) -> None:
    first = first_step()
    first.process_started()
    for report in reports:
        first.heard(report)
    assert first.done is done


def test_a_step_of_any_process_counts() -> None:
    first = first_step()
    for restored in (80, 0):  # a process before this one may have restored more
        first.process_started()
        first.heard({"step": restored, "restoredStep": restored})
        assert first.done is False
    first.heard({"step": 1})
    first.process_started()
    assert first.done is True


def test_a_process_that_reports_no_loop_for_long_may_train_otherwise() -> None:
    first = first_step()
    first.process_started()
    first.process_started()
    first.lasts(1)  # of the process before
    assert first.done is False
    first.lasts(2)
    assert first.done is None
    first = first_step()
    first.process_started()
    first.heard({"state": "training"})
    first.heard({"state": "saving"})
    first.lasts(1)
    assert first.done is False


@pytest.mark.parametrize(("role", "strategy"), [("evaluator", "Mirrored"), ("ps", "ParameterServer")])
def test_a_task_that_does_not_train_writes_no_first_step(tmp_path: Path, role: str, strategy: str) -> None:
    log = tmp_path / "log"
    first = first_step(log, role, strategy)
    first.begins()
    first.process_started()
    first.heard({"step": 7, "restoredStep": 0})
    assert first.done is None
    assert not log.exists()


def test_the_words_are_there_until_a_step_may_be_done(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for report in ({"step": 1}, {"trainsItself": True}):
        first = first_step(log)
        first.begins()
        assert json.loads(log.read_text()) == {"task": "worker-1", "attempt": 2, "stepped": False}
        first.process_started()
        first.heard({"restoredStep": 0})
        assert log.read_text()
        first.heard(report)
        assert log.read_text() == ""  # the log's end speaks then


def test_the_words_go_with_the_supervisor_and_others_stay(tmp_path: Path) -> None:
    log = tmp_path / "log"
    first = first_step(log)
    first.begins()
    first.ends()
    assert log.read_text() == ""
    first.begins()
    log.write_text("the program's own")
    first.ends()
    assert log.read_text() == "the program's own"
    first.begins()
    assert log.read_text() == "the program's own"
    first_step().begins()
