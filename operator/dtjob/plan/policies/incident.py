"""Incidents: failures that belong together, the restart budget they use up, and the wait before the next start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from dtjob.api.failure_policy import Backoff
from dtjob.plan.failure import Cause
from dtjob.plan.incident import Incident

FORGET_AFTER = timedelta(minutes=10)
"""An incident this long ago no longer lengthens the wait, as with the kubelet's crash-loop backoff."""


def wait_before(in_a_row: int, backoff: Backoff) -> timedelta:
    """The wait before the `in_a_row`-th restart: none before the first, then doubling from initialSeconds to
    maxSeconds."""
    if in_a_row <= 1:
        return timedelta(0)
    doublings = min(in_a_row - 2, 20)
    return timedelta(seconds=min(backoff.initial_seconds * 2**doublings, backoff.max_seconds))


def is_due(incident: Incident | None, now: datetime) -> bool:
    """Whether the wait before the next start is over."""
    return incident is None or now >= incident.not_before


def next_incident(
    previous: Incident | None,
    cause: Cause,
    checkpoint_step: int,
    attempts: Mapping[str, int],
    backoff: Backoff,
    now: datetime,
) -> Incident:
    """The incident that `cause` begins now, with the tasks at these `attempts`. A newer checkpoint than the last
    refill's refills the budget."""
    charged = in_a_row = 0
    refilled_at = checkpoint_step
    if previous is not None and checkpoint_step <= previous.checkpoint_step:
        charged, refilled_at = previous.charged, previous.checkpoint_step
        in_a_row = previous.in_a_row if now - previous.started_at < FORGET_AFTER else 0
    in_a_row += 1
    started_at = now.replace(microsecond=0)  # as the status will hold it: now and after a restart of the operator alike
    return Incident(
        started_at=started_at,
        cause=cause,
        not_before=started_at + wait_before(in_a_row, backoff),
        charged=charged + (1 if cause.charged else 0),
        in_a_row=in_a_row,
        checkpoint_step=refilled_at,
        attempts=attempts,
    )


def joined(incident: Incident, cause: Cause) -> Incident:
    """The incident with one more failure in it. A stronger cause takes over, and an uncharged one gives the charge
    back."""
    if cause.precedence >= incident.cause.precedence:
        return incident
    refund = 1 if incident.cause.charged and not cause.charged else 0
    return replace(incident, cause=cause, charged=incident.charged - refund)
