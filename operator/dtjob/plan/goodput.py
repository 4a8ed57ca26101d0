"""Goodput: what the time of a job has gone into since all of its tasks first ran, as `status.goodput` keeps it.

Every second that is counted stands under exactly one of `seconds`; which one, `policies/goodput.py` decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from dtjob import times

WRITTEN = ("percent", "seconds", "steps", "counted")
"""The fields of `status.goodput` that this version knows."""


class Part(StrEnum):
    """What time goes into. KEPT is the goodput, UNKNOWN is known to be neither, and the others are what was lost."""

    KEPT = "kept"
    """Steps that stand, with the data, validations and callbacks between them."""
    REDONE = "redone"
    """Steps that a restart took back."""
    SAVING = "saving"
    """Training stood still for a save."""
    RESTARTING = "restarting"
    """All tasks ran, and training did not go on yet after a restart; or the wait before a restart."""
    WAITING_FOR_PODS = "waitingForPods"
    """Some pod without which training does not go on did not run."""
    STARTING = "starting"
    """All tasks ran, and training had not begun yet, at first and after a suspension."""
    ENDING = "ending"
    """Training was over, and the job was not."""
    UNKNOWN = "unknown"
    """The chief's status could not be read, or does not tell."""


class Doing(StrEnum):
    """What a job was at when its time was counted last."""

    WAITING_FOR_PODS = "waitingForPods"
    BACKOFF = "backoff"
    STARTING = "starting"
    RESTARTING = "restarting"
    TRAINING = "training"
    ENDING = "ending"
    SUSPENDED = "suspended"


@dataclass(frozen=True)
class Spent:
    """What the chief task's supervisor tells of its own time, in seconds and steps (docs/contract.md: `spent`)."""

    attempt: int = -1
    incarnation: int = 0
    """Which of its training processes has told it."""
    from_step: int = 0
    kept_steps: int = 0
    kept: float = 0.0
    redone_steps: int = 0
    redone: float = 0.0
    saving: float = 0.0

    @property
    def last_step(self) -> int:
        """The step that it has come to."""
        return self.from_step + self.kept_steps

    @property
    def seconds(self) -> float:
        """All time that it accounts for."""
        return self.kept + self.redone + self.saving

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], attempt: int, incarnation: int) -> Spent:
        """Read a block of that form; whatever is no number from 0 on counts as 0."""
        return cls(
            attempt,
            incarnation,
            _steps(fields.get("from")),
            _steps(fields.get("keptSteps")),
            _seconds(fields.get("kept")),
            _steps(fields.get("redoneSteps")),
            _seconds(fields.get("redone")),
            _seconds(fields.get("saving")),
        )

    def to_json(self) -> dict[str, Any]:
        """The same form again."""
        fields = {"from": self.from_step, "keptSteps": self.kept_steps, "redoneSteps": self.redone_steps}
        return fields | {name: round(getattr(self, name), 2) for name in ("kept", "redone", "saving")}


NOBODY_TOLD = Spent()


@dataclass(frozen=True)
class Goodput:
    """The time of one job, and how far it is counted."""

    until: datetime
    """All time before this is counted, by the operator's clock."""
    doing: Doing
    """What the job was at then."""
    seconds: Mapping[Part, float] = field(default_factory=dict)
    kept_steps: int = 0
    redone_steps: int = 0
    told: Spent = NOBODY_TOLD
    """What of the supervisor's own account is counted."""
    untold: Mapping[Part, float] = field(default_factory=dict)
    """Of each part so many seconds, counted since this supervisor said something new, it may yet account for."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @property
    def ratio(self) -> float | None:
        """Kept time of all time of which it is known what it went into, 0 to 1; None before a supervisor has told of
        training."""
        known = sum(value for part, value in self.seconds.items() if part is not Part.UNKNOWN)
        if self.told.attempt < 0 or known <= 0:
            return None
        return self.seconds.get(Part.KEPT, 0.0) / known

    @property
    def percent(self) -> int | None:
        """The ratio in whole percent, rounded down."""
        return None if self.ratio is None else math.floor(100 * self.ratio + 1e-6)

    def plus(self, part: Part, seconds: float) -> Goodput:
        """With more time under one part; never below zero."""
        value = max(0.0, self.seconds.get(part, 0.0) + seconds)
        return replace(self, seconds={**self.seconds, part: value})

    @classmethod
    def from_json(cls, fields: Any) -> Goodput | None:
        """What `status.goodput` holds; None where it holds nothing that this version can count on from."""
        counted = fields.get("counted") if isinstance(fields, Mapping) else None
        if not isinstance(counted, Mapping):
            return None
        try:
            until, doing = times.parse(counted["until"]), Doing(counted["doing"])
        except (KeyError, TypeError, ValueError):
            return None
        if until.tzinfo is None:
            return None
        seconds, steps = _block(fields, "seconds"), _block(fields, "steps")
        return cls(
            until=until,
            doing=doing,
            seconds={part: _seconds(value) for part, value in _parts(seconds)},
            kept_steps=_steps(steps.get("kept")),
            redone_steps=_steps(steps.get("redone")),
            told=Spent.from_json(counted, _whole(counted.get("attempt"), -1), _whole(counted.get("incarnation"), 0)),
            untold={part: _seconds(value) for part, value in _parts(_block(counted, "untold"))},
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self) -> dict[str, Any]:
        """The goodput in the status' form; parts that no time went into are left out."""
        # No coarser than what supervisors tell: else many writes would add up to another sum.
        rounded = {part.value: round(self.seconds.get(part, 0.0), 2) for part in Part}
        fields: dict[str, Any] = {
            **self.others,
            "percent": self.percent,
            "seconds": {name: value for name, value in rounded.items() if value},
            "steps": {"kept": self.kept_steps, "redone": self.redone_steps},
            "counted": {
                "until": self.until.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "doing": self.doing.value,
                **self._untold(),
                **self._told(),
            },
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _untold(self) -> dict[str, Any]:
        rounded = {part.value: round(value, 2) for part, value in self.untold.items()}
        untold = {name: value for name, value in rounded.items() if value}
        return {"untold": untold} if untold else {}

    def _told(self) -> dict[str, Any]:
        if self.told.attempt < 0:
            return {}
        return {"attempt": self.told.attempt, "incarnation": self.told.incarnation, **self.told.to_json()}


def _block(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = fields.get(name)
    return found if isinstance(found, Mapping) else {}


def _parts(block: Mapping[str, Any]) -> list[tuple[Part, Any]]:
    return [(part, block[part]) for part in Part if part in block]


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _steps(value: Any) -> int:
    return max(0, _whole(value, 0))


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return max(0.0, float(value))
