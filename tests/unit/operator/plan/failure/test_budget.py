# SPDX-License-Identifier: Apache-2.0
"""Incidents: what is charged, and how long to wait."""

from datetime import datetime, timedelta

import pytest

from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.condition import Condition
from dtjob.api.status.internal import Incident
from dtjob.api.status.progress import Restored, SavedCheckpoint
from dtjob.api.status.status import Status
from dtjob.plan.failure import budget
from dtjob.plan.failure.budget import (
    A_WHILE,
    LONG_RUN,
    belongs,
    counts,
    is_over,
    note_end,
    restarts_in_a_row,
    shows_its_cause,
    wait_before,
    with_another_failure,
)
from dtjob.plan.record.failure import Cause, Failure
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

BACKOFF = Backoff()
NOBODY = Attempts()


def failure(cause: Cause, action: RuleAction | None = None) -> Failure:
    """A failure with this cause, about which a rule may have decided."""
    built_in = RuleAction.RESTART if cause.charged else RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS
    rule = "failurePolicy.rules[0]" if action else ""
    task = builders.task("worker-0")
    return Failure(task, cause, NOW, "digits-worker-0-0", "", "failed", "", rule=rule, action=action or built_in)


def next_incident(
    previous: Incident | None,
    cause: Cause,
    checkpoint_step: int,
    attempts: Attempts,
    backoff: Backoff,
    now: datetime,
    running_since: datetime | None,
) -> Incident:
    """The incident that a failure with this cause begins in a job with this status."""
    status = after(previous, checkpoint_step, runs=running_since).remembering(attempts=attempts)
    return budget.next_incident(status, failure(cause), backoff, now)


def after(
    incident: Incident | None, saved: int = -1, restored: Restored | None = None, runs: datetime | None = None
) -> Status:
    """The status of a job with this incident, its newest checkpoint, and since when all tasks run."""
    running = builders.condition("Running", since=runs) if runs else None
    status = Status().remembering(incident=incident)
    checkpoint = SavedCheckpoint(step=saved) if saved >= 0 else None
    conditions = tuple(Condition.model_validate(one) for one in (running,) if one)
    return status.but(checkpoint=checkpoint, restored=restored, conditions=conditions)


FIRST = next_incident(None, Cause.ERROR, -1, NOBODY, BACKOFF, NOW, None)


@pytest.mark.parametrize(("in_a_row", "seconds"), [(0, 0), (1, 0), (2, 10), (3, 20), (6, 160), (7, 300), (10**6, 300)])
def test_the_wait_doubles_up_to_its_limit(in_a_row: int, seconds: int):
    assert wait_before(in_a_row, BACKOFF) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("status", "restarts"),
    [
        (Status(), 0),
        (after(FIRST), 1),
        (after(FIRST, saved=100), 0),
        (after(FIRST, runs=at(2)), 1),
        (after(FIRST, runs=at(1)), 0),
    ],
)
def test_a_checkpoint_or_a_long_run_ends_the_restarts_in_a_row(status: Status, restarts: int):
    assert restarts_in_a_row(status, BACKOFF, at(1 + LONG_RUN.total_seconds())) == restarts


def test_a_newer_checkpoint_refills_the_budget_once():
    refilled = next_incident(FIRST, Cause.ERROR, 100, NOBODY, BACKOFF, at(60), None)
    assert (refilled.charged, refilled.in_a_row, refilled.checkpoint_step) == (1, 1, 100)
    assert next_incident(refilled, Cause.ERROR, 100, NOBODY, BACKOFF, at(120), None).charged == 2


@pytest.mark.parametrize(
    ("backoff", "runs_for", "waits"),
    [
        (Backoff(initial_seconds=600, max_seconds=3600), 5, [0, 600, 1200, 2400, 3600, 3600]),
        (Backoff(), 5, [0, 10, 20, 40, 80, 160, 300, 300]),
        (Backoff(), 300, [0, 10, 20, 40, 80, 160, 300, 300]),
        (Backoff(), 600, [0, 0, 0]),
        (Backoff(initial_seconds=600, max_seconds=3600), 7199, [0, 600, 1200]),
        (Backoff(initial_seconds=600, max_seconds=3600), 7200, [0, 0, 0]),
        (Backoff(max_seconds=0), 1, [0, 0, 0]),
    ],
)
def test_a_row_of_restarts_goes_on_until_the_job_has_run_long_after_its_wait(backoff, runs_for, waits):
    incident, failed_at, found = None, NOW, []
    for _ in waits:
        started = incident.not_before + timedelta(seconds=3) if incident else None
        incident = next_incident(incident, Cause.ERROR, -1, NOBODY, backoff, failed_at, started)
        found.append((incident.not_before - failed_at).total_seconds())
        failed_at = incident.not_before + timedelta(seconds=3 + runs_for)
    assert found == waits


def test_incidents_that_are_not_charged_have_their_own_count_and_wait_too():
    second = next_incident(FIRST, Cause.DISRUPTION, -1, NOBODY, BACKOFF, at(60), None)
    third = next_incident(second, Cause.DELETED, -1, NOBODY, BACKOFF, at(120), None)
    assert [(one.charged, one.uncharged) for one in (FIRST, second, third)] == [(1, 0), (1, 1), (1, 2)]
    assert [(one.in_a_row, one.not_before) for one in (second, third)] == [(2, at(70)), (3, at(140))]
    assert next_incident(third, Cause.DELETED, 5, NOBODY, BACKOFF, at(180), None).uncharged == 1
    ran_long = next_incident(third, Cause.DELETED, -1, NOBODY, BACKOFF, third.not_before + LONG_RUN, at(121))
    assert (ran_long.charged, ran_long.uncharged) == (1, 1)


def test_a_stronger_cause_takes_over_and_an_uncharged_one_refunds():
    assert with_another_failure(FIRST, failure(Cause.OOM_KILLED)).charged == 1
    disrupted = with_another_failure(FIRST, failure(Cause.DISRUPTION))
    assert (disrupted.charged, disrupted.uncharged) == (0, 1)
    evicted = next_incident(None, Cause.DISRUPTION, -1, NOBODY, BACKOFF, NOW, None)
    assert with_another_failure(evicted, failure(Cause.ERROR)) == evicted


def end_of(status: Status, now: datetime) -> datetime | None:
    incident = note_end(status, now).internal.incident
    return incident.ends_at


SAVED_100 = next_incident(None, Cause.ERROR, 100, NOBODY, BACKOFF, NOW, None)


@pytest.mark.parametrize(
    ("saved", "restored", "expected"),
    [
        (120, Restored(step=100, time=at(10)), at(20)),
        (100, Restored(step=100, time=at(10)), None),
        (120, Restored(step=120, time=at(10)), None),  # it was saved before the failure, and told of after it
        (50, Restored(step=0, time=at(10)), at(20)),  # the checkpoint went with its pod, and training began again
        (120, Restored(step=100, time=at(-10)), None),
        (120, None, None),
    ],
)
def test_an_incident_ends_when_training_has_resumed_and_saved(saved, restored, expected):
    assert end_of(after(SAVED_100, saved, restored), at(20)) == expected


@pytest.mark.parametrize(("saved", "runs", "expected"), [(120, -5, at(20)), (100, -5, at(40)), (120, 5, at(45))])
def test_an_incident_in_which_training_did_not_stop_ends_with_a_newer_checkpoint(saved, runs, expected):
    """As a ParameterServer job that has lost a worker."""
    assert end_of(after(SAVED_100, saved, runs=at(runs)), at(20)) == expected


def test_an_incident_ends_when_all_tasks_have_run_for_a_while_after_its_wait():
    waits = next_incident(FIRST, Cause.ERROR, -1, NOBODY, BACKOFF, at(100), None)
    assert end_of(after(waits), at(600)) is None
    assert end_of(after(waits, runs=at(50)), at(160)) == waits.not_before + A_WHILE == at(150)
    assert end_of(after(waits, runs=at(130)), at(160)) == at(170)


def test_the_first_moment_at_which_all_run_again_decides():
    noted = note_end(after(FIRST, runs=at(10)), at(12))
    later = noted.but(conditions=after(FIRST, runs=at(45)).conditions)
    assert end_of(later, at(46)) == at(50)


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
def test_a_failure_after_an_incidents_end_or_of_a_newer_attempt_does_not_belong_to_it(task, attempt, now, expected):
    assert belongs(AGAIN.but(ends_at=at(100)), task, attempt, now) == expected


def test_an_incident_lasts_until_training_has_resumed():
    assert belongs(AGAIN, "worker-0", 2, at(86400))
    assert not is_over(AGAIN, at(86400))


@pytest.mark.parametrize(("now", "ends_at", "expected"), [(40, None, True), (41, None, False), (30, 30, False)])
def test_the_cause_of_an_incident_shows_only_soon_after_it_and_before_its_end(now, ends_at, expected):
    incident = AGAIN.but(ends_at=None if ends_at is None else at(ends_at))
    assert shows_its_cause(incident, at(now)) == expected


def test_a_rule_says_what_counts():
    assert counts(FIRST)
    spared = FIRST.but(action="RestartAndIgnoreMaxRestarts", charged=2, uncharged=1)
    assert not counts(spared)
    ruled = with_another_failure(spared, failure(Cause.OOM_KILLED, RuleAction.RESTART))
    assert (ruled.charged, ruled.uncharged, ruled.action) == (3, 0, "Restart")
