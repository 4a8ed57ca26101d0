"""The record of an incident: what belongs to it, and how the status keeps it."""

from __future__ import annotations

from datetime import datetime

import pytest

from dtjob.api.failure_policy import Backoff
from dtjob.plan.failure import Cause
from dtjob.plan.incident import Incident
from dtjob.plan.policies.incident import next_incident
from dtjob.plan.status import Status
from tests.unit.operator.builders import NOW, at

BACKOFF = Backoff()
FIRST = next_incident(None, Cause.ERROR, -1, {}, BACKOFF, NOW)
AGAIN = next_incident(FIRST, Cause.ERROR, -1, {"worker-0": 2}, BACKOFF, NOW)


@pytest.mark.parametrize(
    ("task", "attempt", "now", "expected"),
    [
        ("worker-0", 2, at(40), True),
        ("worker-0", 3, at(1), False),
        ("worker-1", 0, at(1), True),
        ("worker-1", 1, at(1), False),
        ("worker-0", 2, at(41), False),
    ],
)
def test_what_failed_later_than_it_or_was_made_since_does_not_belong_to_it(
    task: str, attempt: int, now: datetime, expected: bool
):
    assert AGAIN.holds(task, attempt, now) == expected


@pytest.mark.parametrize("incident", [FIRST, AGAIN, next_incident(AGAIN, Cause.ERROR, -1, {}, BACKOFF, at(60.7))])
def test_it_survives_the_status(incident: Incident):
    assert Incident.from_json(incident.to_json()) == incident
    assert Status.from_json({}).incident is None


def test_one_that_an_older_operator_wrote_is_read():
    """Nobody noted the attempts: what fails in its time belongs to it."""
    written = AGAIN.to_json()
    del written["attempts"]
    read = Incident.from_json(written)
    assert (read.holds("worker-0", 3, at(40)), read.holds("worker-0", 3, at(41))) == (True, False)
    assert read.to_json() == written
