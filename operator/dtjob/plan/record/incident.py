# SPDX-License-Identifier: Apache-2.0
"""An incident as `status.internal.incident` keeps it: whether it is charged, is over, and what belongs to it."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.incident import Incident
from dtjob.plan.record.failure import Cause

WINDOW = timedelta(seconds=40)
"""What shows within this time of an incident's start may be its cause: a cut-off peer is noticed after up to 35 s."""


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
    """Whether a failure of this attempt, observed at `now`, belongs to the incident: the incident has not ended, and
    the pod was there when it began. A later attempt begins an incident of its own: else a pod that fails at each start
    would be free."""
    # No pod's time is asked: that is the API server's clock, and ours may differ.
    return attempt <= incident.attempts.of(task_id) and not is_over(incident, now)


def is_over(incident: Incident, now: datetime) -> bool:
    """Whether the incident has ended."""
    return incident.ends_at is not None and now >= incident.ends_at


def shows_its_cause(incident: Incident, now: datetime) -> bool:
    """Whether what fails now may still be the cause of the incident."""
    return now - incident.started_at <= WINDOW and not is_over(incident, now)
