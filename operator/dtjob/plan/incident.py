"""The latest incident and what came before it, as `status.incident` keeps it between two looks at a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.plan.failure import Cause

WINDOW = timedelta(seconds=40)
"""Failures within this time of an incident's start belong to it: a cut-off peer is noticed after up to 35 s."""

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
