"""The record of an incident: what belongs to it, and what counts."""

from __future__ import annotations

from datetime import datetime

import pytest

from dtjob.api.failure_policy import Backoff
from dtjob.api.failure_rules import RuleAction
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.incident import Errors, Incident
from dtjob.plan.failure import Cause
from dtjob.plan.incident import belongs, counts
from dtjob.plan.policies.incident import joined, next_incident
from tests.unit.operator.builders import NOW, at

BACKOFF = Backoff()
FIRST = next_incident(None, Cause.ERROR, -1, Attempts(), BACKOFF, NOW, None)
AGAIN = next_incident(FIRST, Cause.ERROR, -1, Attempts(exceptions={"worker-0": 2}), BACKOFF, NOW, None)


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
    assert belongs(AGAIN, task, attempt, now) == expected


@pytest.mark.parametrize(
    "incident",
    [
        FIRST,
        AGAIN,
        next_incident(AGAIN, Cause.ERROR, -1, Attempts(), BACKOFF, at(60.7), None),
        next_incident(AGAIN, Cause.DISRUPTION, -1, Attempts(exceptions={"chief-0": 2}, others=1), BACKOFF, NOW, None),
        next_incident(None, Cause.STORAGE_LIMIT_EXCEEDED, -1, Attempts(), BACKOFF, NOW, None),
        FIRST.but(cause="NodeMelted"),
        FIRST.but(errors=Errors(began=NOW, count=3, attempts=Attempts(exceptions={"worker-0": 1}))),
    ],
)
def test_it_survives_the_status(incident: Incident):
    assert Incident.model_validate(incident.to_json()) == incident


def test_where_it_does_not_say_the_attempts_what_fails_in_its_time_belongs_to_it():
    unknown = AGAIN.but(attempts=None)
    assert (belongs(unknown, "worker-0", 3, at(40)), belongs(unknown, "worker-0", 3, at(41))) == (True, False)


def test_a_cause_that_this_version_does_not_know_stays():
    other = FIRST.but(cause="NodeMelted")
    assert not counts(other)
    assert joined(other, Cause.DISRUPTION) is other  # it knew better


def test_a_rule_says_what_counts():
    assert counts(FIRST)
    spared = FIRST.but(action="RestartAndIgnoreMaxRestarts", charged=2, uncharged=1)
    assert not counts(spared)
    ruled = joined(spared, Cause.OOM_KILLED, RuleAction.RESTART)
    assert (ruled.charged, ruled.uncharged, ruled.action) == (3, 0, "Restart")
