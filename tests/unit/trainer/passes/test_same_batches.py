# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.passes.same_batches: which differences between the tasks' first batches of a pass are refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtjob_trainer.data import marks
from dtjob_trainer.errors import DataError
from dtjob_trainer.passes.same_batches import are_compared, see
from tests.unit.trainer.tasks import Tasks

TASKS = ("chief-0", "worker-0", "worker-1")
X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
LABELS = np.arange(8)


def batch(x: Any = X, y: Any = LABELS, rows: int = 12) -> list[float]:
    return [*marks.of_rows(rows, [x]), *marks.of_rows(rows, [y]), *marks.of_rows(-1, [])]


def source(compared: Any) -> Any:
    return SimpleNamespace(argument="x", compared=compared)


def found(compared: str, *rows: list[float]) -> tuple[str, bool]:
    """What the chief is told or refused, and whether it is refused, if these are the marks of each task."""
    told: list[str] = []

    def one(group: Any) -> None:
        see(source(compared), group, rows[group.index], told.append if group.index == 0 else lambda _: None)

    errors = Tasks(TASKS[: len(rows)]).errors(one)
    assert len(set(map(str, errors))) == 1
    assert len(told) <= 1
    assert errors[0] is None or isinstance(errors[0], DataError)
    return (str(errors[0]), True) if errors[0] else ("".join(told), False)


def test_the_same_batches_have_no_difference() -> None:
    assert found("all", batch(), batch(), batch(np.nextafter(X, np.float32(np.inf)))) == ("", False)


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
        ("all", list(marks.NO_BATCH), "reads no examples and chief-0 12", True),
    ],
)
def test_the_message_names_the_task_whose_batch_differs_from_the_chiefs(
    compared: str, other: list[float], words: str, refused: bool
) -> None:
    told, ends = found(compared, batch(), batch(), other)
    assert ends is refused
    assert words in told
    assert not words or told.startswith("x: in the first batch of a pass, task worker-1 reads ")


def test_targets_that_may_be_random_are_reported_and_not_refused() -> None:
    mixed = [*batch()[:10], *marks.of_rows(12, [X]), *marks.of_rows(-1, [])]
    others = [*batch()[:10], *marks.of_rows(12, [X[::-1]]), *marks.of_rows(-1, [])]
    told, refused = found("labels", mixed, others)
    assert (refused, "other targets than chief-0: if these are not random values" in told) == (False, True)


def test_inputs_that_may_be_random_are_reported_where_there_is_nothing_else_to_compare() -> None:
    def of(x: Any) -> list[float]:
        return [*marks.of_rows(12, [x]), *marks.of_rows(-1, []), *marks.of_rows(-1, [])]

    told, refused = found("labels", of(X), of(X[::-1]))
    assert (refused, "other inputs than chief-0: if these are not random values" in told) == (False, True)


@pytest.mark.parametrize(("tasks", "compared", "wanted"), [(1, "all", False), (2, None, False), (2, "all", True)])
def test_only_tasks_that_read_the_same_batches_compare_them(tasks: int, compared: Any, wanted: bool) -> None:
    group: Any = SimpleNamespace(tasks=tasks)
    assert are_compared(source(compared), group) is wanted
