"""What is decided by an incident as `status.internal.incident` keeps it between two looks at a job."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.failure_rules import RuleAction
from dtjob.api.status.incident import Incident
from dtjob.plan.failure import Cause

WINDOW = timedelta(seconds=40)
"""Failures within this time of an incident's start belong to it: a cut-off peer is noticed after up to 35 s."""


def is_charged(cause: str, action: str | None) -> bool:
    """Whether an incident of this cause, about which a rule said `action` (None: none did), is charged: counts against
    the limit of restarts."""
    if action is not None:
        return action == RuleAction.RESTART
    known = Cause.known(cause)
    return known is not None and known.charged


def counts(incident: Incident) -> bool:
    """Whether the incident counts against the limit of restarts."""
    return is_charged(incident.cause, incident.action)


def belongs(incident: Incident, task_id: str, attempt: int, now: datetime) -> bool:
    """Whether a failure of this attempt, observed at `now`, belongs to the incident: one of a later attempt than the
    task was at begins its own, or a pod that fails at each start would be free for as long as this lasts."""
    # No pod's time is asked: that is the API server's clock, and ours may differ.
    was_there = incident.attempts is None or attempt <= incident.attempts.of(task_id)
    return was_there and now - incident.started_at <= WINDOW
