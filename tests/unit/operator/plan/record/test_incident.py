# SPDX-License-Identifier: Apache-2.0
"""The record of an incident: what belongs to it, and what counts."""

from __future__ import annotations

from datetime import datetime

import pytest

from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.incident import Errors, Incident
from dtjob.plan.failure.budget import next_incident, with_another_failure
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.incident import belongs, counts, is_over, shows_its_cause
from tests.unit.operator.builders import NOW, at

BACKOFF = Backoff()
FIRST = next_incident(None, Cause.ERROR, -1, Attempts(), BACKOFF, NOW, None)
AGAIN = next_incident(FIRST, Cause.ERROR, -1, Attempts(exceptions={"worker-0": 2}), BACKOFF, NOW, None)


@pytest.mark.parametrize(
    ("task", "attempt", "now", "expected"),
    [
        ("worker-0", 2, at(99), True),
        ("worker-0", 3, at(1), False),
        ("worker-1", 0, at(1), True),
        ("worker-1", 1, at(1), False),
        ("worker-0", 2, at(100), False),
    ],
)
def test_a_failure_after_an_incidents_end_or_of_a_newer_attempt_does_not_belong_to_it(
    task: str, attempt: int, now: datetime, expected: bool
):
    assert belongs(AGAIN.but(ends_at=at(100)), task, attempt, now) == expected


def test_an_incident_lasts_until_training_has_resumed():
    assert belongs(AGAIN, "worker-0", 2, at(86400))
    assert not is_over(AGAIN, at(86400))


@pytest.mark.parametrize(("now", "ends_at", "expected"), [(40, None, True), (41, None, False), (30, 30, False)])
def test_the_cause_of_an_incident_shows_only_soon_after_it_and_before_its_end(
    now: float, ends_at: float | None, expected: bool
):
    incident = AGAIN.but(ends_at=None if ends_at is None else at(ends_at))
    assert shows_its_cause(incident, at(now)) == expected


@pytest.mark.parametrize(
    "incident",
    [
        FIRST,
        AGAIN,
        next_incident(AGAIN, Cause.ERROR, -1, Attempts(), BACKOFF, at(60.7), None),
        next_incident(AGAIN, Cause.DISRUPTION, -1, Attempts(exceptions={"chief-0": 2}, others=1), BACKOFF, NOW, None),
        next_incident(None, Cause.STORAGE_LIMIT_EXCEEDED, -1, Attempts(), BACKOFF, NOW, None),
        FIRST.but(cause="NodeMelted"),
        FIRST.but(ends_at=at(40)),
        FIRST.but(errors=Errors(began=NOW, count=3, attempts=Attempts(exceptions={"worker-0": 1}))),
    ],
)
def test_an_incident_is_the_same_after_a_write_and_a_read(incident: Incident):
    assert Incident.model_validate(incident.to_json()) == incident


def test_a_cause_that_this_version_does_not_know_stays():
    other = FIRST.but(cause="NodeMelted")
    assert not counts(other)
    assert with_another_failure(other, Cause.DISRUPTION) is other  # it knew better


def test_a_rule_says_what_counts():
    assert counts(FIRST)
    spared = FIRST.but(action="RestartAndIgnoreMaxRestarts", charged=2, uncharged=1)
    assert not counts(spared)
    ruled = with_another_failure(spared, Cause.OOM_KILLED, RuleAction.RESTART)
    assert (ruled.charged, ruled.uncharged, ruled.action) == (3, 0, "Restart")
