# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.settings: the manifest's blocks, from their JSON."""

import math

import pytest

from dtjob_trainer.contract.settings import (
    Checkpoint,
    Evaluation,
    KeepBest,
    ProfiledSteps,
    TensorBoard,
    json_object,
)
from dtjob_trainer.errors import TaskError


def test_a_checkpoint_is_read_whole() -> None:
    text = """{"directory": "/c", "everyEpochs": 4, "everySteps": 5, "everySeconds": 60, "maxToKeep": 2,
        "writeMode": "Sync",
        "saveTimeoutSeconds": 9, "keepEverySteps": 50, "keepBest": {"metric": "loss", "mode": "Min", "count": 4}}"""
    best = KeepBest("loss", is_highest=False, count=4)
    assert Checkpoint.from_json(text) == Checkpoint("/c", 4, 5, 60, 2, "Sync", 9.0, 50, best)
    assert Checkpoint.from_json('{"directory": "/c"}') == Checkpoint("/c", None, None, 300, 3, "Async", 60.0)


@pytest.mark.parametrize(("given", "used"), [("gs://b/a/", "gs://b/a"), ("gs://b//", "gs://b"), ("/", "/")])
def test_a_slash_at_the_end_of_a_directory_is_none(given: str, used: str) -> None:
    """In a bucket what is written to a//b is not what is listed of a/."""
    assert Checkpoint.from_json(f'{{"directory": "{given}"}}').directory == used


@pytest.mark.parametrize("text", ["{}", '{"directory": ""}', '{"directory": 5}'])
def test_a_checkpoint_needs_a_directory(text: str) -> None:
    with pytest.raises(TaskError, match="DTJOB_CHECKPOINT has no 'directory'"):
        Checkpoint.from_json(text)


def test_evaluation_says_what_to_evaluate_and_what_is_best() -> None:
    lowest, highest = KeepBest("loss", is_highest=False), KeepBest("accuracy", is_highest=True)
    found = Evaluation.from_json('{"checkpoints": "Every", "best": {"metric": "loss", "mode": "Min"}}')
    assert found == Evaluation(every=True, best=lowest)
    without = Evaluation.from_json('{"best": {"metric": "loss", "mode": "Min", "keepModel": false}}')
    assert without == Evaluation(best=lowest, keep_model=False)
    assert Evaluation.from_json("{}") == Evaluation()
    assert lowest.is_better(0.1, 0.2)
    assert lowest.is_better(0.1, None)
    assert not lowest.is_better(0.2, 0.2)
    assert not lowest.is_better(math.nan, None)
    assert highest.is_better(0.3, 0.2)


def test_the_best_are_so_many_values_the_earlier_of_equal_ones() -> None:
    values = {5: 0.2, 10: 0.1, 15: math.nan, 20: 0.2, 25: 0.3}
    assert KeepBest("accuracy", is_highest=True, count=2).best_of(values) == {5: 0.2, 25: 0.3}
    assert KeepBest("loss", is_highest=False).best_of(values) == {10: 0.1}
    assert KeepBest("loss", is_highest=False, count=9).best_of({5: math.nan}) == {}


def test_tensorboard_says_which_steps_to_write_and_to_profile() -> None:
    assert TensorBoard.from_json("{}") == TensorBoard(every_steps=100, profile=None)
    found = TensorBoard.from_json('{"everySteps": 50, "profile": {"firstStep": 10, "steps": 3}}')
    assert found == TensorBoard(50, ProfiledSteps(10, 3))
    assert TensorBoard.from_json('{"profile": {"firstStep": 2}}').profile == ProfiledSteps(2, 5)


def test_a_profile_begins_at_its_first_step_or_where_a_restart_comes_into_it() -> None:
    asked = ProfiledSteps(first_step=10, steps=3)
    assert asked.last_step == 12
    assert [done for done in range(20) if asked.begins(done, 1)] == [9, 10, 11]
    assert [done for done in range(0, 20, 4) if asked.begins(done, 4)] == [8]


def test_steps_that_are_profiled_run_one_by_one() -> None:
    asked, done, calls = ProfiledSteps(10, 3), 0, []
    while (left := asked.left(done)) is not None:
        calls.append((done, left))
        done += left
    assert calls == [(0, 9), (9, 1), (10, 1), (11, 1)]
    assert [asked.left(done) for done in (8, 10, 12, 30)] == [1, 1, None, None]


@pytest.mark.parametrize(("text", "words"), [("x", "X is not JSON"), ("[1]", "X must be a JSON object")])
def test_a_text_that_is_no_json_object_is_refused_with_the_variables_name(text: str, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        json_object("X", text)
