"""The record of an incident: what belongs to it, and how the status keeps it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from dtjob.api.failure_policy import Backoff
from dtjob.api.failure_rules import RuleAction
from dtjob.plan.attempts import Attempts
from dtjob.plan.failure import Cause
from dtjob.plan.incident import Errors, Incident
from dtjob.plan.policies.incident import joined, next_incident
from dtjob.plan.status import Status
from tests.unit.operator.builders import NOW, at

BACKOFF = Backoff()
FIRST = next_incident(None, Cause.ERROR, -1, Attempts(), BACKOFF, NOW, None)
AGAIN = next_incident(FIRST, Cause.ERROR, -1, Attempts({"worker-0": 2}), BACKOFF, NOW, None)


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


@pytest.mark.parametrize(
    "incident",
    [
        FIRST,
        AGAIN,
        next_incident(AGAIN, Cause.ERROR, -1, Attempts(), BACKOFF, at(60.7), None),
        next_incident(AGAIN, Cause.DISRUPTION, -1, Attempts({"chief-0": 2}, 1), BACKOFF, NOW, None),
        next_incident(None, Cause.STORAGE_LIMIT_EXCEEDED, -1, Attempts(), BACKOFF, NOW, None),
        replace(FIRST, cause="NodeMelted"),
        replace(FIRST, errors=Errors(NOW, 3, Attempts({"worker-0": 1}))),
    ],
)
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


def test_a_cause_that_a_newer_operator_wrote_is_carried():
    written = {**FIRST.to_json(), "cause": "NodeMelted"}
    read = Incident.from_json(written)
    assert (read.cause, read.to_json()) == ("NodeMelted", written)
    assert joined(read, Cause.DISRUPTION) is read  # it knew better


def test_an_earlier_version_reads_a_cause_that_came_after_it():
    """It raises on a word that it does not know, at every plan of the job."""
    later = next_incident(None, Cause.STORAGE_LIMIT_EXCEEDED, -1, Attempts(), BACKOFF, NOW, None)
    written = later.to_json()
    assert (written["cause"], written["countedAs"]) == ("Signal", "StorageLimitExceeded")
    # It keeps what it does not know, also where another cause takes over.
    disrupted = Incident.from_json({**written, "cause": "Disruption", "charged": 0})
    assert disrupted.cause is Cause.DISRUPTION
    assert "countedAs" not in disrupted.to_json()


def test_a_stall_is_counted_by_its_own_name_and_is_a_signal_to_an_earlier_version():
    later = next_incident(None, Cause.STALLED, -1, Attempts(), BACKOFF, NOW, None)
    written = later.to_json()
    assert (written["cause"], written["countedAs"], written["charged"]) == ("Signal", "Stalled", 1)
    assert Incident.from_json(written) == later


def test_an_earlier_version_cannot_read_what_it_must_leave_alone():
    written = FIRST.to_json(for_earlier=False)
    assert "cause" not in written
    assert Incident.from_json(written) == FIRST


def test_an_incident_of_the_last_release_which_knew_no_rules_is_read_and_written_as_it_was():
    written = {
        "startedAt": "2026-11-21T10:00:00Z",
        "cause": "Error",
        "notBefore": "2026-11-21T10:00:10Z",
        "charged": 2,
        "uncharged": 1,
        "inARow": 3,
        "checkpointStep": 50,
        "attempts": {"worker-0": 1},
    }
    read = Incident.from_json(written)
    assert (read.action, read.is_charged, read.to_json()) == (None, True, written)
    ruled = joined(replace(read, action="RestartAndIgnoreMaxRestarts"), Cause.OOM_KILLED, RuleAction.RESTART)
    assert (ruled.charged, ruled.uncharged, ruled.to_json()["action"]) == (3, 0, "Restart")
