# SPDX-License-Identifier: Apache-2.0
"""How long a job has been active, and how the status keeps that."""

from datetime import timedelta

import pytest

from dtjob.api.status.activity import Activity
from tests.unit.operator.builders import NOW, at


def test_suspension_does_not_count():
    first = Activity().begun(NOW).ended(at(100))
    assert (first.since, first.lasted(at(5000))) == (None, timedelta(seconds=100))
    again = first.begun(at(5000))
    assert again.lasted(at(5030)) == timedelta(seconds=130)
    assert again.ended(at(5030)).seconds == 130


def test_a_period_that_has_begun_is_not_begun_again():
    active = Activity().begun(NOW).all_run(at(3))
    assert active.begun(at(50)) is active
    assert active.all_run(at(60)).all_ran_time == at(3)


def test_all_tasks_must_run_again_after_a_suspension():
    assert Activity().begun(NOW).all_run(at(3)).ended(at(10)).begun(at(20)).all_ran_time is None


def test_a_clock_that_was_set_back_takes_nothing_away():
    active = Activity().begun(NOW).ended(at(100)).begun(at(200))
    assert active.lasted(at(-3600)) == timedelta(seconds=100)
    assert active.ended(at(-3600)).seconds == 100


@pytest.mark.parametrize(
    "active",
    [
        Activity(),
        Activity().begun(at(0.7)),
        Activity().begun(NOW).all_run(at(2.5)),
        Activity().begun(NOW).ended(at(99.9)),
        Activity.model_validate({"since": "2026-11-21T10:00:00Z", "paused": 3}),
    ],
)
def test_activity_is_unchanged_by_a_write_and_a_read(active: Activity):
    assert Activity.model_validate(active.to_json()) == active
