# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.passes.lookahead: a pass ends at the same step in every task, loses no batch, and begins alike."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.data import marks
from dtjob_trainer.errors import DataError
from tests.unit.trainer.tasks import Tasks

np = pytest.importorskip("numpy")
batches = pytest.importorskip("dtjob_trainer.data.batches")
lookahead = pytest.importorskip("dtjob_trainer.passes.lookahead")


class Counts(batches.Source):  # type: ignore[misc,name-defined]
    """One task's batches, of these numbers of examples."""

    may_be_empty, exact, steps = True, True, None

    def __init__(self, counts: list[int], *, own_ends: bool, size: int = 1) -> None:
        self.counts, self.own_ends, self.size, self.read = counts, own_ends, size, 0

    def epoch(self, number: int, first_step: int) -> Iterator[Any]:
        for count in self.counts[first_step:]:
            self.read += 1
            yield batches.Batch(("mine",), count, count)

    def input_spec(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def stand_in(self, number: int) -> tuple[Any, ...]:
        return ("stands in",)

    def bytes_of(self, batch: Any) -> int:
        return self.size


def passes(
    counts: list[list[int]], *, own_ends: bool, most: int = 1
) -> tuple[list[list[tuple[str, int, int]]], int, list[str]]:
    """What each task takes of its batches, how often they have summed, and what is told."""
    tasks, told = Tasks([f"worker-{index}" for index in range(len(counts))]), list[str]()

    def take(group: Any) -> list[tuple[str, int, int]]:
        one = lookahead.Pass(Counts(counts[group.index], own_ends=own_ends), 0, 0, group, told.append)
        found = []
        while taken := one.take(most):
            found += [(batch.inputs[0], batch.count, batch.total) for batch in taken]
        assert one.over
        assert not one.more()
        return found

    return tasks.run(take), tasks.exchanges, told


@pytest.mark.parametrize("most", [1, 3, 50])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 15, 40])
def test_all_tasks_take_all_batches_of_the_same_data(length: int, most: int) -> None:
    found, sums, told = passes([[4] * length] * 2, own_ends=False, most=most)
    assert found == [[("mine", 4, 4)] * length] * 2
    assert not told
    assert sums <= 4 + length / 8


def test_a_pass_ends_with_the_first_task_whose_data_must_be_the_same() -> None:
    found, _, told = passes([[4] * 5, [4] * 9, [4] * 30], own_ends=False)
    assert [len(taken) for taken in found] == [5, 5, 5]
    assert told


@pytest.mark.parametrize("most", [1, 3])
def test_a_pass_goes_on_until_the_last_task_has_no_examples_of_its_own(most: int) -> None:
    counts = [[4] * 9 + [2], [4, 1], []]
    found, _, told = passes(counts, own_ends=True, most=most)
    assert [len(taken) for taken in found] == [10, 10, 10]
    assert found[0][:3] == [("mine", 4, 8), ("mine", 4, 5), ("mine", 4, 4)]
    assert found[1][1:3] == [("mine", 1, 5), ("stands in", 0, 4)]
    assert found[2][0] == ("stands in", 0, 8)
    assert [sum(count for _, count, _ in taken) for taken in found] == [sum(mine) for mine in counts]
    assert not told


def test_large_batches_are_not_read_far_ahead() -> None:
    group: Any = SimpleNamespace(tasks=2, sum=lambda vector: 2 * vector)  # the other one has the same numbers
    for size, ahead in ((1, lookahead.MOST_AHEAD), (lookahead.BYTES_AHEAD // 2 + 1, 1)):
        source = Counts([4] * 100, own_ends=False, size=size)
        one = lookahead.Pass(source, 0, 0, group)
        one.take(40)
        assert 40 <= source.read <= 40 + ahead


def test_a_task_alone_reads_one_batch_at_a_time() -> None:
    source = Counts([4] * 9, own_ends=False)
    one = lookahead.Pass(source, 0, 0, SimpleNamespace(tasks=1))
    assert one.more()
    assert source.read == 1
    one.take(2)
    assert source.read == 2


TASKS = ("chief-0", "worker-0", "worker-1")
X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
LABELS = np.arange(8)


def marked(x: Any = X, y: Any = LABELS, rows: int = 12) -> list[float]:
    return [*marks.of_rows(rows, [x]), *marks.of_rows(rows, [y]), *marks.of_rows(-1, [])]


def source(compared: Any) -> Any:
    return SimpleNamespace(argument="x", compared=compared)


def seen(compared: str, *rows: list[float]) -> tuple[str, bool]:
    """What the chief is told or refused, and whether it is refused, if these are the marks of each task."""
    told: list[str] = []

    def one(group: Any) -> None:
        lookahead.see_same(
            source(compared), group, rows[group.index], told.append if group.index == 0 else lambda _: None
        )

    errors = Tasks(TASKS[: len(rows)]).errors(one)
    assert len(set(map(str, errors))) == 1
    assert len(told) <= 1
    assert errors[0] is None or isinstance(errors[0], DataError)
    return (str(errors[0]), True) if errors[0] else ("".join(told), False)


def test_the_same_batches_have_no_difference() -> None:
    assert seen("all", marked(), marked(), marked(np.nextafter(X, np.float32(np.inf)))) == ("", False)


@pytest.mark.parametrize(
    ("compared", "other", "words", "refused"),
    [
        ("all", marked(X[::-1]), "reads other inputs than chief-0: some examples would be trained on twice", True),
        ("targets", marked(X[::-1]), "reads other inputs than chief-0: if these are not random values", False),
        ("labels", marked(X[::-1]), "", False),
        ("all", marked(y=LABELS[::-1]), "reads other targets than chief-0: some examples", True),
        ("targets", marked(X[::-1], LABELS[::-1]), "reads other targets than chief-0: some examples", True),
        ("labels", marked(X[::-1], LABELS[::-1]), "reads other targets than chief-0: some examples", True),
        ("labels", marked(rows=11), "reads 11 examples and chief-0 12; make the same Dataset", True),
        ("all", list(marks.NO_BATCH), "reads no examples and chief-0 12", True),
    ],
)
def test_the_message_names_the_task_whose_batch_differs_from_the_chiefs(
    compared: str, other: list[float], words: str, refused: bool
) -> None:
    told, ends = seen(compared, marked(), marked(), other)
    assert ends is refused
    assert words in told
    assert not words or told.startswith("x: in the first batch of a pass, task worker-1 reads ")


def test_targets_that_may_be_random_are_reported_and_not_refused() -> None:
    mixed = [*marked()[:10], *marks.of_rows(12, [X]), *marks.of_rows(-1, [])]
    others = [*marked()[:10], *marks.of_rows(12, [X[::-1]]), *marks.of_rows(-1, [])]
    told, refused = seen("labels", mixed, others)
    assert (refused, "other targets than chief-0: if these are not random values" in told) == (False, True)


def test_inputs_that_may_be_random_are_reported_where_there_is_nothing_else_to_compare() -> None:
    def of(x: Any) -> list[float]:
        return [*marks.of_rows(12, [x]), *marks.of_rows(-1, []), *marks.of_rows(-1, [])]

    told, refused = seen("labels", of(X), of(X[::-1]))
    assert (refused, "other inputs than chief-0: if these are not random values" in told) == (False, True)
