# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.engines.feed: which inputs a custom loop gets, from which step on."""

import itertools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.engines.feed import SourceFeed

ROWS = 256


class Rows:
    """256 rows in batches, of which each says its pass and its first row."""

    exact, inexact, remark, cut_by_batch = True, "", "", False

    def __init__(self, batch: int, known: bool = True) -> None:
        self.batch, self.steps = batch, ROWS // batch if known else None

    def input_spec(self) -> Any:
        return (tf.TensorSpec([None, 2], tf.int64),)

    def shared(self, eras: Any) -> None:
        """As a Source."""

    def epoch(self, number: int, first_step: int) -> Iterator[Any]:
        for first in range(first_step * self.batch, ROWS, self.batch):
            yield SimpleNamespace(inputs=(np.array([[number, first]] * self.batch),), marks=())


def feed(batch: int, known: bool = True) -> SourceFeed:
    source: Any = Rows(batch, known)
    return SourceFeed(source, batch)


def seen(made: SourceFeed, step: int, most: int) -> list[tuple[int, int]]:
    """Pass and first row of the next batches."""
    return [tuple(inputs[0][0].tolist()) for inputs in itertools.islice(made.inputs(step), most)]


def test_passes_over_the_data_follow_one_another() -> None:
    assert seen(feed(64), 3, 6) == [(0, 192), (1, 0), (1, 64), (1, 128), (1, 192), (2, 0)]


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
    kept, made = feed(before).position(step), feed(after)
    told = made.take_up(kept, step)
    assert seen(made, step, len(rest)) == rest
    assert (told is None) == (before == after)
    assert told is None or f"batch_size was {before} where the checkpoint was written, and is {after} now" in told
    again = feed(after)  # and so does another one, of the checkpoint that is written then
    assert again.take_up(made.position(step + 1), step + 1) is None
    assert seen(again, step + 1, len(rest) - 1) == rest[1:]


@pytest.mark.parametrize("cut_by_batch", [False, True])
def test_data_without_an_end_goes_on_at_the_same_example(cut_by_batch: bool) -> None:
    """Be it only about the same, where the order depends on the batches: it cannot begin anew."""
    made = feed(16, known=False)
    made._source.cut_by_batch = cut_by_batch
    made.take_up(feed(32, known=False).position(3), 3)
    assert seen(made, 3, 2) == [(0, 96), (0, 112)]


def test_the_marks_of_the_first_batch_of_each_pass_are_compared() -> None:
    class Marked(Rows):
        def epoch(self, number: int, first_step: int) -> Iterator[Any]:
            for step, batch in enumerate(super().epoch(number, first_step)):
                yield SimpleNamespace(inputs=batch.inputs, marks=(float(number),) if step == 0 else ())

    source: Any = Marked(64)
    compared: list[Any] = []
    seen(SourceFeed(source, 64, lambda *told: compared.append(told)), 3, 6)
    assert compared == [(source, (0.0,)), (source, (1.0,)), (source, (2.0,))]
