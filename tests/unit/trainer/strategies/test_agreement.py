# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.agreement: values of all tasks by name, and the messages for those that differ."""

from typing import Any

import numpy as np
import pytest

from dtjob_trainer.errors import DataError, FitError
from dtjob_trainer.strategies.agreement import Agreement, digest
from tests.unit.trainer.tasks import Tasks

TASKS = ("chief-0", "worker-0", "worker-1")
LINE = "epochs: task {task} has {mine}, {chief} {his}"


def exchanged(*values: Any, **options: Any) -> list[Any]:
    """What each task gets of a fact with these values, or the error that it raises."""

    def one(group: Any) -> Any:
        return Agreement(group).add("other", 1).add("epochs", values[group.index], LINE, **options).exchange()

    return Tasks(TASKS[: len(values)]).found(one)


def test_each_task_gets_the_values_of_all_by_their_names() -> None:
    for found in exchanged([2, 3], [4, 5]):
        assert found["epochs"].tolist() == [[2, 3], [4, 5]]
        assert found["other"].tolist() == [[1], [1]]


def test_all_tasks_raise_the_error_of_the_first_task_that_differs_from_the_chief() -> None:
    found = exchanged(2, 2, 3, error=FitError)
    assert {(type(error), str(error)) for error in found} == {(FitError, "epochs: task worker-1 has 3, chief-0 2")}
    assert str(exchanged(2, None, 3, error=DataError)[0]) == "epochs: task worker-0 has none, chief-0 2"


def test_the_number_that_differs_is_shown_in_the_words_of_the_fact() -> None:
    found = exchanged([1, 0.5], [1, 0.25], error=FitError, words=lambda value: f"{value:.0%}")
    assert str(found[0]) == "epochs: task worker-0 has 25%, chief-0 50%"


@pytest.mark.parametrize(("near", "fails"), [(True, False), (False, True)])
def test_floats_may_be_nearly_the_same_where_the_fact_says_so(near: bool, fails: bool) -> None:
    assert isinstance(exchanged(1.0, 1.00001, near=near, error=FitError)[0], FitError) is fails
    assert not isinstance(exchanged([np.nan], [np.nan], near=near, error=FitError)[0], FitError)


def test_a_difference_that_may_be_intended_is_only_told() -> None:
    told: list[str] = []
    assert exchanged(1, 2, error=told.append)[0]["epochs"].tolist() == [[1], [2]]
    assert set(told) == {"epochs: task worker-0 has 2, chief-0 1"}


def test_texts_are_compared_by_their_digests() -> None:
    assert digest([True, "a"]) == digest([True, "a"]) != digest([True, "b"])
