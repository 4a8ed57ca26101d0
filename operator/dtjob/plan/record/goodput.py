# SPDX-License-Identifier: Apache-2.0
"""Goodput: the seconds and steps of a job, as they are counted since all of its tasks first ran.

Every second that is counted stands under exactly one of `seconds`; which one, `lifetime/time_spent.py` decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dtjob.api.status.goodput import GoodputSeconds, GoodputStatus, Part
from dtjob.api.status.internal import Counted, Doing, Spent
from dtjob.api.status.status import Status

NOTHING_REPORTED = Spent()


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
    reported: Spent = NOTHING_REPORTED
    """What of the supervisor's own account is counted."""

    @property
    def ratio(self) -> float | None:
        """Kept time of all time of which it is known what it went into, 0 to 1; None before a supervisor has reported
        training."""
        return None if self.reported.attempt < 0 else kept_ratio(self.seconds)

    @property
    def percent(self) -> int | None:
        """The ratio in whole percent, rounded down."""
        return None if self.ratio is None else math.floor(100 * self.ratio + 1e-6)

    def plus(self, part: Part, seconds: float) -> Goodput:
        """With more time under one part; never below zero."""
        value = max(0.0, self.seconds.get(part, 0.0) + seconds)
        return replace(self, seconds={**self.seconds, part: value})

    @classmethod
    def of(cls, status: Status, now: datetime) -> Goodput | None:
        """What the status tells of it; None if nothing is counted yet. Where it does not tell how far it is counted,
        it is counted on from now."""
        said, counted = status.goodput, status.internal.goodput
        if said is None:
            return None
        if counted is None:
            counted = Counted(until=now, doing=Doing.WAITING_FOR_PODS)
        return cls(
            until=counted.until,
            doing=counted.doing,
            seconds=by_part(said.seconds),
            kept_steps=said.steps.kept,
            redone_steps=said.steps.redone,
            reported=counted.reported,
        )

    def written_to(self, status: Status) -> Status:
        """The status with this in it; fields of it that are not known stay."""
        said = status.goodput or GoodputStatus()
        said = said.but(
            percentage=self.percent,
            seconds=_in_block(said.seconds, self.seconds),
            steps=said.steps.but(kept=self.kept_steps, redone=self.redone_steps),
        )
        counted = Counted(until=self.until, doing=self.doing, reported=self.reported)
        return status.but(goodput=said).remembering(goodput=counted)


def kept_ratio(seconds: Mapping[Part, float]) -> float | None:
    """Kept time of all time of which it is known what it went into, 0 to 1; None if none is."""
    known = sum(value for part, value in seconds.items() if part is not Part.UNKNOWN)
    return seconds.get(Part.KEPT, 0.0) / known if known > 0 else None


def by_part(seconds: GoodputSeconds) -> dict[Part, float]:
    """The seconds by part, those without time left out."""
    return {part: value for part, name in _FIELDS.items() if (value := getattr(seconds, name))}


_FIELDS = {part: part.name.lower() for part in Part}
"""The field of each part in `GoodputSeconds`."""


def _in_block(block: GoodputSeconds, seconds: Mapping[Part, float]) -> GoodputSeconds:
    # No coarser than what supervisors tell: else many writes would add up to another sum.
    return block.but(**{name: round(seconds.get(part, 0.0), 2) for part, name in _FIELDS.items()})
