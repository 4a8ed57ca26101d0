# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.train: which batches a custom loop gets, from which step on."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.errors import DataError
from dtjob_trainer.loops import train
from dtjob_trainer.passes.epochs import Epochs

ROWS = 256
ALONE: Any = SimpleNamespace(tasks=1)


class Rows(Source):
    """256 rows in batches, of which each says its pass and its first row."""

    may_be_empty, exact, argument = False, True, "data"

    def __init__(self, batch: int, known: bool = True) -> None:
        self.batch: int = batch
        self.steps = ROWS // batch if known else None

    def input_spec(self) -> Any:
        return (tf.TensorSpec([None, 2], tf.int64),)

    def epoch(self, number: int, first_step: int) -> Iterator[Any]:
        for first in range(first_step * self.batch, ROWS, self.batch):
            yield Batch((np.array([[number, first]] * self.batch),), self.batch, self.batch)


def epochs(batch: int, known: bool = True) -> tuple[Epochs, list[str]]:
    told: list[str] = []
    here: Any = SimpleNamespace(warn=told.append)
    return train.passes(Rows(batch, known), ALONE, here), told


def seen(made: Epochs, step: int, most: int) -> list[tuple[int, int]]:
    """Pass and first row of the next batches, taken as the loop takes them."""
    found: list[tuple[int, int]] = []
    while len(found) < most:
        if not (work := made.take(step + len(found), 1)):
            made.end(step + len(found))
            continue
        assert isinstance(work, list)
        found.append(tuple(work[0].inputs[0][0].tolist()))
    return found


def test_passes_over_the_data_follow_one_another() -> None:
    assert seen(epochs(64)[0], 0, 9)[3:] == [(0, 192), (1, 0), (1, 64), (1, 128), (1, 192), (2, 0)]


@pytest.mark.parametrize(
    ("before", "step", "after", "rest"),
    [
        (16, 24, 16, [(1, 128), (1, 144), (1, 160)]),
        (16, 24, 32, [(1, 128), (1, 160), (1, 192), (1, 224), (2, 0)]),
        (32, 12, 16, [(1, 128), (1, 144)]),
        (16, 25, 32, [(1, 128), (1, 160)]),  # within a batch of now: its rows come twice, none is left out
        (64, 5, 32, [(1, 64), (1, 96)]),
    ],
)
def test_a_restart_goes_on_at_the_same_example_of_the_same_pass(
    before: int, step: int, after: int, rest: list[tuple[int, int]]
) -> None:
    first, _ = epochs(before)
    seen(first, 0, step)
    made, told = epochs(after)
    made.take_up(first.position(step), step)
    assert seen(made, step, len(rest)) == rest
    expected = f"batch_size was {before} where the checkpoint was written, and is {after} now"
    assert [expected in each for each in told] == ([] if before == after else [True])
    made, _ = epochs(after)  # and so does another one, of a checkpoint that is written then
    made.take_up(first.position(step), step)
    seen(made, step, 1)
    again, told = epochs(after)
    again.take_up(made.position(step + 1), step + 1)
    assert told == []
    assert seen(again, step + 1, len(rest) - 1) == rest[1:]


@pytest.mark.parametrize("cut_by_batch", [False, True])
def test_data_without_an_end_goes_on_at_the_same_example(cut_by_batch: bool) -> None:
    """Be it only about the same, where the order depends on the batches: it cannot begin anew."""
    first, made = epochs(32, known=False)[0], epochs(16, known=False)[0]
    seen(first, 0, 3)
    made.source.cut_by_batch = cut_by_batch
    made.take_up(first.position(3), 3)
    assert seen(made, 3, 2) == [(0, 96), (0, 112)]


def test_tasks_do_not_ask_one_another_whether_data_without_an_end_goes_on() -> None:
    here: Any = SimpleNamespace(warn=print)
    group: Any = SimpleNamespace(tasks=2)  # it cannot sum
    assert seen(train.passes(Rows(64, known=False), group, here), 0, 2) == [(0, 0), (0, 64)]


def test_data_that_has_no_more_examples_is_refused() -> None:
    made, _ = epochs(64)
    made.source.epoch = lambda number, first_step: iter(())  # type: ignore[method-assign]
    with pytest.raises(DataError, match="data: it has ended before total_steps"):
        made.take(0, 1)
