"""How long a job has been active, as `status.active` keeps it: the time that deadlines count.

All of it is the operator's own clock: no pod's and no API server's time is compared with it, which may be ahead or
behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from dtjob import times

WRITTEN = ("since", "seconds", "allRanAt")
"""The fields of `status.active` that this version knows."""


@dataclass(frozen=True)
class Activity:
    """A job is active while it is not suspended and has not ended, whether its pods run or wait."""

    since: datetime | None = None
    """Since when it is active, None while it is suspended."""
    before: timedelta = timedelta(0)
    """How long it was active before that."""
    all_ran_at: datetime | None = None
    """When all tasks that train were first seen to run since then, None where they never were."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Activity:
        """The activity that `status.active` holds."""
        return cls(
            since=times.parse(fields["since"]) if "since" in fields else None,
            before=timedelta(seconds=fields.get("seconds", 0)),
            all_ran_at=times.parse(fields["allRanAt"]) if "allRanAt" in fields else None,
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self) -> dict[str, Any]:
        """The activity in the status' form."""
        fields: dict[str, Any] = {
            **self.others,
            "since": times.rfc3339(self.since) if self.since else None,
            "seconds": int(self.before.total_seconds()),
            "allRanAt": times.rfc3339(self.all_ran_at) if self.all_ran_at else None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def lasted(self, now: datetime) -> timedelta:
        """How long the job has been active, all in all. A clock that was set back takes nothing away."""
        running = now - self.since if self.since else timedelta(0)
        return self.before + max(running, timedelta(0))

    def went_on_after(self, moment: datetime) -> bool:
        """Whether the job was suspended after this moment, and is active again."""
        return self.since is not None and self.since > moment

    def begun(self, now: datetime) -> Activity:
        """Active from now on, where it was not."""
        return self if self.since else replace(self, since=_whole(now), all_ran_at=None)

    def ended(self, now: datetime) -> Activity:
        """Not active from now on."""
        lasted = timedelta(seconds=int(self.lasted(now).total_seconds()))
        return replace(self, since=None, before=lasted, all_ran_at=None)

    def all_run(self, now: datetime) -> Activity:
        """All tasks that train run now."""
        return replace(self, all_ran_at=self.all_ran_at or _whole(now))


def _whole(moment: datetime) -> datetime:
    """To the second, as it will be read back."""
    return moment.replace(microsecond=0)
