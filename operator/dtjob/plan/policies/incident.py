"""Incidents: failures that belong together, the restart budget they use up, and the wait before the next start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.failure_policy import Backoff
from dtjob.plan.policies.failure_cause import Cause

WINDOW = timedelta(seconds=40)
"""Failures within this time of an incident's start belong to it: a cut-off peer is noticed after up to 35 s."""

FORGET_AFTER = timedelta(minutes=10)
"""An incident this long ago no longer lengthens the wait, as with the kubelet's crash-loop backoff."""

WRITTEN = ("startedAt", "cause", "notBefore", "charged", "inARow", "checkpointStep", "attempts")
"""The fields of `status.incident` that this version knows."""


@dataclass(frozen=True)
class Incident:
    """The latest incident and what came before it. Kept in `status.incident`, so a restarted operator knows it."""

    started_at: datetime
    cause: Cause
    not_before: datetime
    """No pod is created before this moment."""
    charged: int = 0
    """Charged incidents since the last newer checkpoint."""
    in_a_row: int = 0
    """Incidents of any kind since the last newer checkpoint."""
    checkpoint_step: int = -1
    """The newest checkpoint when the budget was last refilled."""
    attempts: Mapping[str, int] | None = None
    """The attempt that each task was at when it began, by task id and without those at 0. None where an earlier version
    of the operator wrote it."""

    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Incident:
        """The incident that `status.incident` holds."""
        return cls(
            started_at=times.parse(fields["startedAt"]),
            cause=Cause(fields["cause"]),
            not_before=times.parse(fields["notBefore"]),
            charged=fields["charged"],
            in_a_row=fields["inARow"],
            checkpoint_step=fields["checkpointStep"],
            attempts=fields.get("attempts"),
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self) -> dict[str, Any]:
        """The incident in the status' form."""
        fields: dict[str, Any] = {
            **self.others,
            "startedAt": times.rfc3339(self.started_at),
            "cause": self.cause.value,
            "notBefore": times.rfc3339(self.not_before),
            "charged": self.charged,
            "inARow": self.in_a_row,
            "checkpointStep": self.checkpoint_step,
        }
        return fields if self.attempts is None else {**fields, "attempts": dict(self.attempts)}

    def holds(self, task_id: str, attempt: int, now: datetime) -> bool:
        """Whether a failure of this attempt, observed at `now`, belongs to the incident: one of a later attempt than
        the task was at begins its own, or a pod that fails at each start would be free for as long as this lasts."""
        # No pod's time is asked: that is the API server's clock, and ours may differ.
        was_there = self.attempts is None or attempt <= self.attempts.get(task_id, 0)
        return was_there and now - self.started_at <= WINDOW


def wait_before(in_a_row: int, backoff: Backoff) -> timedelta:
    """The wait before the `in_a_row`-th restart: none before the first, then doubling from initialSeconds to
    maxSeconds."""
    if in_a_row <= 1:
        return timedelta(0)
    doublings = min(in_a_row - 2, 20)
    return timedelta(seconds=min(backoff.initial_seconds * 2**doublings, backoff.max_seconds))


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
