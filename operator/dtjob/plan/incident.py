"""The latest incident and what came before it, as `status.incident` keeps it between two looks at a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.failure_rules import RuleAction
from dtjob.plan.attempts import Attempts
from dtjob.plan.failure import Cause

WINDOW = timedelta(seconds=40)
"""Failures within this time of an incident's start belong to it: a cut-off peer is noticed after up to 35 s."""

WRITTEN = (
    *("startedAt", "cause", "countedAs", "notBefore", "charged", "uncharged", "inARow", "checkpointStep", "attempts"),
    *("errors", "beforeFirstStep", "action"),
)
"""The fields of `status.incident` that this version knows."""

CAUSE_BEFORE: Mapping[str, Cause] = {
    Cause.STORAGE_LIMIT_EXCEEDED: Cause.SIGNAL,
    Cause.STALLED: Cause.SIGNAL,
}
"""What stands in `cause` for causes that came later: earlier versions raise on a word that they do not know."""


@dataclass(frozen=True)
class Errors:
    """Charged incidents soon after each other, all of which the loss of one peer would explain."""

    began: datetime
    count: int
    attempts: Attempts
    """The attempt that each task was at when the first of them began."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Errors:
        """The errors that `status.incident.errors` holds."""
        return cls(times.parse(fields["began"]), fields["count"], Attempts.from_json(fields["attempts"]))

    def to_json(self) -> dict[str, Any]:
        """The errors in the status' form."""
        return {"began": times.rfc3339(self.began), "count": self.count, "attempts": self.attempts.to_json()}


@dataclass(frozen=True)
class Mistake:
    """What a program failed with before its job's first step, as far as a second failure alike has the same."""

    exit_code: int
    exception: str
    """Without numbers and the like; empty where no exception ended it."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Mistake:
        """The mistake that `status.incident.beforeFirstStep` holds."""
        return cls(int(fields.get("exitCode", 0)), str(fields.get("exception", "")))

    def to_json(self) -> dict[str, Any]:
        """The mistake in the status' form."""
        return {"exitCode": self.exit_code, **({"exception": self.exception} if self.exception else {})}


@dataclass(frozen=True)
class Incident:
    """The latest incident and what came before it. Kept in `status.incident`, so a restarted operator knows it."""

    started_at: datetime
    cause: str
    """A `Cause`, or the word of a newer operator for one that this version does not know."""
    not_before: datetime
    """No pod is created before this moment."""
    charged: int = 0
    """Charged incidents since the last newer checkpoint."""
    uncharged: int = 0
    """Incidents that were not charged, since the last newer checkpoint or long run."""
    in_a_row: int = 0
    """Incidents of any kind, since the last newer checkpoint or long run."""
    checkpoint_step: int = -1
    """The newest checkpoint when the budget was last refilled."""
    attempts: Attempts | None = None
    """The attempt that each task was at when it began. None where an earlier version of the operator wrote it."""
    action: str | None = None
    """What a rule of failurePolicy.rules said to do about it; None where none did."""
    errors: Errors | None = None
    """The row of errors that it ends, None where its cause is another or has no peer to blame."""

    mistake: Mistake | None = None
    """What may be the program's own fault, where it failed before the job's first step."""

    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Incident:
        """The incident that `status.incident` holds."""
        return cls(
            started_at=times.parse(fields["startedAt"]),
            cause=_cause(fields),
            not_before=times.parse(fields["notBefore"]),
            charged=fields["charged"],
            uncharged=fields.get("uncharged", 0),
            in_a_row=fields["inARow"],
            checkpoint_step=fields["checkpointStep"],
            attempts=Attempts.from_json(fields["attempts"]) if "attempts" in fields else None,
            action=fields.get("action"),
            errors=Errors.from_json(fields["errors"]) if "errors" in fields else None,
            mistake=Mistake.from_json(fields["beforeFirstStep"]) if "beforeFirstStep" in fields else None,
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self, *, for_earlier: bool = True) -> dict[str, Any]:
        """The incident in the status' form. Without `for_earlier` it has no `cause`, so that earlier versions of the
        operator cannot read it, and leave the job alone."""
        word = CAUSE_BEFORE.get(self.cause, self.cause)
        fields: dict[str, Any] = {
            **self.others,
            "startedAt": times.rfc3339(self.started_at),
            "cause": str(word) if for_earlier else None,
            "countedAs": str(self.cause) if word != self.cause or not for_earlier else None,
            "notBefore": times.rfc3339(self.not_before),
            "charged": self.charged,
            "uncharged": self.uncharged or None,
            "inARow": self.in_a_row,
            "checkpointStep": self.checkpoint_step,
            "attempts": None if self.attempts is None else self.attempts.to_json(),
            "action": None if self.action is None else str(self.action),
            "errors": None if self.errors is None else self.errors.to_json(),
            "beforeFirstStep": None if self.mistake is None else self.mistake.to_json(),
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def is_charged(self) -> bool:
        """Whether it counts against failurePolicy.maxRestartsWithoutProgress."""
        return is_charged(self.cause, self.action)

    def holds(self, task_id: str, attempt: int, now: datetime) -> bool:
        """Whether a failure of this attempt, observed at `now`, belongs to the incident: one of a later attempt than
        the task was at begins its own, or a pod that fails at each start would be free for as long as this lasts."""
        # No pod's time is asked: that is the API server's clock, and ours may differ.
        was_there = self.attempts is None or attempt <= self.attempts.of(task_id)
        return was_there and now - self.started_at <= WINDOW


def is_charged(cause: str, action: str | None) -> bool:
    """Whether an incident of this cause, about which a rule said `action` (None: none did), is charged."""
    if action is not None:
        return action == RuleAction.RESTART
    known = Cause.known(cause)
    return known is not None and known.charged


def _cause(fields: Mapping[str, Any]) -> str:
    """The word for the incident's cause: `countedAs`, unless an operator that does not know it gave another `cause`."""
    cause, exact = fields.get("cause"), fields.get("countedAs")
    if exact is None or (cause is not None and cause != CAUSE_BEFORE.get(exact, exact)):
        exact = fields["cause"]
    return Cause.known(exact) or str(exact)
