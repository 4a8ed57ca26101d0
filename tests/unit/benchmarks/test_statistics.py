# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios and goals of measured rounds."""

import pytest

from benchmarks.operators.statistics import Goal, Spread, found_for, of_side, percentile, ratios, spread

ROUNDS = [
    {"dtjob": {"seconds": 2.0}, "other": {"seconds": 8.0}},
    {"dtjob": {"seconds": 4.0}, "other": {"seconds": 4.0}},
    {"dtjob": {"seconds": 3.0}, "other": {"seconds": 6.0, "only": 1.0}},
]


def test_a_spread_is_the_median_the_least_and_the_most():
    assert spread([5.0, 1.0, 2.0]) == Spread(2.0, 1.0, 5.0)
    assert spread([1.0, 2.0]) == Spread(1.5, 1.0, 2.0)


@pytest.mark.parametrize(("share", "value"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.001, 1.0)])
def test_a_percentile_is_one_of_the_values(share: float, value: float):
    assert percentile([float(number) for number in range(100, 0, -1)], share) == value


def test_a_percentile_of_one_value_is_that():
    assert percentile([7.0], 0.99) == 7.0


def test_ratios_are_of_the_same_round():
    ours, theirs = (of_side(ROUNDS, side, "seconds") for side in ("dtjob", "other"))
    assert ratios(ours, theirs) == [0.25, 1.0, 0.5]
    assert ratios([1.0, 2.0], [0.0, 4.0]) == [0.5]


@pytest.mark.parametrize(
    ("goal", "found", "holds"),
    [
        (Goal("seconds", "dtjob", "other", "at most", 0.5), Spread(0.5, 0.25, 1.0), True),
        (Goal("seconds", "dtjob", "other", "at most", 0.4), Spread(0.5, 0.25, 1.0), False),
        (Goal("seconds", "other", "dtjob", "at least", 2), Spread(2.0, 1.0, 4.0), True),
        (Goal("seconds", "dtjob", None, "at least", 3.5), Spread(3.0, 2.0, 4.0), False),
    ],
)
def test_a_goal_is_compared_with_the_median(goal: Goal, found: Spread, holds: bool):
    assert found_for(goal, ROUNDS) == found
    assert goal.holds(found.median) is holds


@pytest.mark.parametrize(("number", "of"), [("only", None), ("only", "other"), ("seconds", "nobody")])
def test_a_goal_without_measurements_has_no_verdict(number: str, of: str | None):
    assert found_for(Goal(number, "dtjob", of, "at most", 1), ROUNDS) is None
