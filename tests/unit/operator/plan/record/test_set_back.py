# SPDX-License-Identifier: Apache-2.0
"""A status whose times are later than now."""

from datetime import timedelta

from dtjob.api.status.activity import Activity
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Errors, Incident
from dtjob.api.status.progress import Restored
from dtjob.api.status.status import Status
from dtjob.plan.record.status import after_set_back
from tests.unit.operator.builders import NOW, at

HOUR = timedelta(hours=1)


def status(hours: int = 0) -> Status:
    """A job that restored a checkpoint and then failed, by a clock that is so many hours ahead."""
    ahead = hours * HOUR
    errors = Errors(began=NOW + ahead, count=1, attempts=Attempts())
    incident = Incident(
        started_at=at(100) + ahead, cause="Error", not_before=at(120) + ahead, ends_at=at(160) + ahead, errors=errors
    )
    active = Activity(since=at(10) + ahead, seconds=5, all_ran_time=at(20) + ahead)
    restored = Restored(step=3, time=at(30) + ahead)
    return Status(active=active, restored=restored).remembering(incident=incident)


def test_a_status_whose_incident_has_begun_stays():
    assert after_set_back(status(), at(100)) == status()


def test_all_times_that_a_wrong_clock_gave_move_by_the_same_duration():
    assert after_set_back(status(hours=1), at(100)) == status()


def test_times_of_the_right_clock_stay():
    began = Activity(since=at(10))
    moved = after_set_back(status(hours=1).but(active=began), at(100))
    assert moved.active == began
