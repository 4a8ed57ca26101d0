# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.passes.same_batches: which differences between the tasks' first batches of a pass are refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtjob_trainer.data import marks
from dtjob_trainer.errors import DataError
from dtjob_trainer.passes.same_batches import SameBatches, difference

TASKS = ("chief-0", "worker-0", "worker-1")
X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
LABELS = np.arange(8)


def batch(x: Any = X, y: Any = LABELS, rows: int = 12) -> list[float]:
    return [*marks.of_rows(rows, [x]), *marks.of_rows(rows, [y]), *marks.of_rows(-1, [])]


def source(compared: Any) -> Any:
    return SimpleNamespace(argument="x", compared=compared)


def found(compared: str, *others: list[float]) -> tuple[str, bool]:
    table = np.array([batch(), *others])
    return difference(table, TASKS[: len(table)], source(compared))


def test_the_same_batches_have_no_difference() -> None:
    assert found("all", batch(), batch(np.nextafter(X, np.float32(np.inf)))) == ("", False)


@pytest.mark.parametrize(
    ("compared", "other", "words", "refused"),
    [
        ("all", batch(X[::-1]), "reads other inputs than chief-0: some examples would be trained on twice", True),
        ("targets", batch(X[::-1]), "reads other inputs than chief-0: if these are not random values", False),
        ("labels", batch(X[::-1]), "", False),
        ("all", batch(y=LABELS[::-1]), "reads other targets than chief-0: some examples", True),
        ("targets", batch(X[::-1], LABELS[::-1]), "reads other targets than chief-0: some examples", True),
        ("labels", batch(X[::-1], LABELS[::-1]), "reads other targets than chief-0: some examples", True),
        ("labels", batch(rows=11), "reads 11 examples and chief-0 12; make the same Dataset", True),
        ("all", list(marks.NO_BATCH), "reads -1 examples and chief-0 12", True),
    ],
)
def test_the_message_names_the_task_whose_batch_differs_from_the_chiefs(
    compared: str, other: list[float], words: str, refused: bool
) -> None:
    told, ends = found(compared, batch(), other)
    assert ends is refused
    assert words in told
    assert not words or told.startswith("x: in the first batch of a pass, task worker-1 reads ")


def test_targets_that_may_be_random_are_reported_and_not_refused() -> None:
    mixed = [*batch()[:10], *marks.of_rows(12, [X]), *marks.of_rows(-1, [])]
    others = [*batch()[:10], *marks.of_rows(12, [X[::-1]]), *marks.of_rows(-1, [])]
    told, refused = difference(np.array([mixed, others]), TASKS[:2], source("labels"))
    assert (refused, "other targets than chief-0: if these are not random values" in told) == (False, True)


def test_inputs_that_may_be_random_are_reported_where_there_is_nothing_else_to_compare() -> None:
    def of(x: Any) -> list[float]:
        return [*marks.of_rows(12, [x]), *marks.of_rows(-1, []), *marks.of_rows(-1, [])]

    told, refused = difference(np.array([of(X), of(X[::-1])]), TASKS[:2], source("labels"))
    assert (refused, "other inputs than chief-0: if these are not random values" in told) == (False, True)


class Group:
    """Two tasks, of which the other one has these marks."""

    tasks, members = 2, TASKS[:2]

    def __init__(self, theirs: list[float]) -> None:
        self.theirs, self.left = theirs, 0

    def of_each(self, mine: Any) -> Any:
        return np.stack([mine, np.array(self.theirs)])

    def leave_together(self) -> None:
        self.left += 1


def test_a_refusal_comes_when_all_tasks_know_of_it() -> None:
    group: Any = Group(batch(X[::-1]))
    with pytest.raises(DataError, match="task worker-0 reads other inputs than chief-0"):
        SameBatches(source("all"), group, lambda _: None).see(batch())
    assert group.left == 1


def test_a_difference_that_may_be_intended_is_reported_once() -> None:
    told: list[str] = []
    group: Any = Group(batch(X[::-1]))
    same = SameBatches(source("targets"), group, told.append)
    for _ in range(3):
        same.see(batch())
    assert len(told) == 1


@pytest.mark.parametrize(("tasks", "compared", "wanted"), [(1, "all", False), (2, None, False), (2, "all", True)])
def test_only_tasks_that_read_the_same_batches_compare_them(tasks: int, compared: Any, wanted: bool) -> None:
    group: Any = SimpleNamespace(tasks=tasks)
    assert SameBatches(source(compared), group, lambda _: None).wanted is wanted
