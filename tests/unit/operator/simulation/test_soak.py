# SPDX-License-Identifier: Apache-2.0
"""A short day of few jobs, and that growth is found. `make soak` plays a long one of many."""

from tests.unit.operator.simulation.soak import Day, Row, faults


def rows(**last: int) -> list[Row]:
    """Six hours, of which the last one has other numbers."""
    usual = dict.fromkeys(("jobs", "objects", "deletions", "memories", "timers", "looks", "due", "tasks"), 100)
    return [*(usual for _ in range(5)), usual | last]


def test_nothing_grows_in_six_hours_in_which_jobs_come_and_go() -> None:
    day = Day(5, seed=1)
    found = list(day.rows(6))
    assert faults(found) == []
    assert day.begun > 5
    assert day.removed > 0


def test_growth_is_told() -> None:
    assert faults(rows()) == []
    assert faults(rows(memories=200)) == ["memories grew from 100 to 200"]
    assert faults(rows(objects=20_000)) == ["objects for each job grew from 1 to 200"]
    assert faults(rows(deletions=20_001)) == ["more than 20000 deletions are remembered"]
