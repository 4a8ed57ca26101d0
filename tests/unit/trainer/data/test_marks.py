# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.marks: what tells one shard of arrays from another."""

from typing import Any

import numpy as np
import pytest

from dtjob_trainer.data import marks

FLOATS = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)


@pytest.mark.parametrize(
    "array",
    [
        FLOATS,
        FLOATS[:, 0],
        FLOATS.astype(np.complex64),
        np.arange(10**6, 10**6 + 10),
        np.array([str(number) for number in range(10)]),
        np.array([f"text {number}" for number in range(10)], object),
    ],
)
def test_the_marks_of_another_shard_differ(array: Any) -> None:
    assert marks.of([array]) == marks.of([array.copy()])
    assert marks.of([array[::2]]) != marks.of([array[1::2]])
    assert marks.of([array[:5]]) != marks.of([array[5:]])
    assert marks.of([FLOATS, array[:5]]) != marks.of([FLOATS, array[5:]])


def test_the_last_bits_of_floats_hardly_change_them() -> None:
    """Another processor adds in another order, and so means and deviations of columns are not the same to the bit."""
    exact, near = marks.of([FLOATS])
    exact_there, near_there = marks.of([np.nextafter(FLOATS, np.float32(np.inf))])
    assert exact == exact_there == 0
    assert near_there == pytest.approx(near, rel=1e-6)


def test_marks_of_values_that_are_not_finite_are_finite() -> None:
    strange = np.array([[np.nan, np.inf, -np.inf, 1.7e308], [1.7e308] * 4])
    assert marks.of([strange]) == marks.of([strange])
    assert all(np.isfinite(marks.of([strange])))


def test_each_row_of_a_batch_has_its_own_mark() -> None:
    rows, exact, *near = marks.of_rows(12, [np.arange(8), FLOATS[:8]])
    assert (rows, len(near)) == (12, marks.ROWS_SEEN)
    assert marks.of_rows(12, [np.arange(8), FLOATS[:8]]) == [rows, exact, *near]
    others = marks.of_rows(12, [np.arange(1, 9), FLOATS[[0, 1, 2, 9, 4, 5, 6, 7]]])
    assert others[1] != exact
    assert [before != after for before, after in zip(near, others[2:], strict=True)] == [n == 3 for n in range(8)]
    assert 3 * len(marks.of_rows(-1, [])) == len(marks.NO_BATCH)
