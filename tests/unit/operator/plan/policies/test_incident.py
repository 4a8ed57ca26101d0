"""Incidents: what is charged, and how long to wait."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dtjob.api.failure_policy import Backoff
from dtjob.plan.failure import Cause
from dtjob.plan.policies.incident import FORGET_AFTER, joined, next_incident, wait_before
from tests.unit.operator.builders import NOW, at

BACKOFF = Backoff()
FIRST = next_incident(None, Cause.ERROR, -1, {}, BACKOFF, NOW)


def test_the_first_does_not_wait():
    assert (FIRST.charged, FIRST.in_a_row, FIRST.not_before) == (1, 1, NOW)


@pytest.mark.parametrize(("in_a_row", "seconds"), [(0, 0), (1, 0), (2, 10), (3, 20), (6, 160), (7, 300), (10**6, 300)])
def test_the_wait_doubles_up_to_its_limit(in_a_row: int, seconds: int):
    assert wait_before(in_a_row, BACKOFF) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("cause", "charged"), [(Cause.ERROR, 2), (Cause.DISRUPTION, 1), (Cause.DELETED, 1)])
def test_only_own_failures_are_charged_but_all_wait(cause: Cause, charged: int):
    following = next_incident(FIRST, cause, -1, {}, BACKOFF, at(60))
    assert (following.charged, following.in_a_row, following.not_before) == (charged, 2, at(70))


def test_a_newer_checkpoint_refills_the_budget_once():
    refilled = next_incident(FIRST, Cause.ERROR, 100, {}, BACKOFF, at(60))
    assert (refilled.charged, refilled.in_a_row, refilled.checkpoint_step) == (1, 1, 100)
    assert next_incident(refilled, Cause.ERROR, 100, {}, BACKOFF, at(120)).charged == 2


def test_an_incident_long_ago_lengthens_no_wait_but_stays_charged():
    later = next_incident(FIRST, Cause.ERROR, -1, {}, BACKOFF, NOW + FORGET_AFTER)
    assert (later.in_a_row, later.charged) == (1, 2)


def test_a_stronger_cause_takes_over_and_an_uncharged_one_refunds():
    assert joined(FIRST, Cause.OOM_KILLED).charged == 1
    assert joined(FIRST, Cause.DISRUPTION).charged == 0
    evicted = next_incident(None, Cause.DISRUPTION, -1, {}, BACKOFF, NOW)
    assert joined(evicted, Cause.ERROR) == evicted
