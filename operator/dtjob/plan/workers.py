"""How many workers a job is to have and how many train together, as `status.workers` keeps it: of elastic jobs, whose
number changes.

Everything else goes by the number of the group that is there: `sized` gives the job with that, and with it its tasks,
their cluster spec and their ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.replica_specs import Role
from dtjob.objects import labels

WRITTEN = (
    *("desired", "replicas", "selector", "reason", "message", "since", "resizing"),
    *("unschedulableSince", "adjustedAt"),
)
"""The fields of `status.workers` that this version knows."""


@dataclass(frozen=True)
class Resizing:
    """The group is saving and ending, and one of `to` workers begins when all of it has ended."""

    to: int
    reason: str
    """Why, in one word."""
    message: str
    """Why, in words."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Resizing:
        """The change that `status.workers.resizing` holds."""
        return cls(int(fields.get("to", 1)), str(fields.get("reason", "")), str(fields.get("message", "")))

    def to_json(self) -> dict[str, Any]:
        """The change in the status' form."""
        return {"to": self.to, "reason": self.reason, "message": self.message}


@dataclass(frozen=True)
class Workers:
    """How many workers are wanted and how many there are. All times are the operator's own clock."""

    desired: int
    """What the spec says, as last seen."""
    replicas: int
    """How many the group has: its cluster spec lists so many."""
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    """When a group of this number began; None: the job began with it."""
    resizing: Resizing | None = None
    unschedulable_since: datetime | None = None
    """Since when training waits for tasks that there is no room for; None: it does not."""
    adjusted_at: datetime | None = None
    """When the number was last changed, or was to be, for want of room; None where `desired` has changed since."""
    selector: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Workers:
        """The workers that a status holds."""
        return cls(
            desired=int(fields.get("desired", 1)),
            replicas=int(fields.get("replicas", fields.get("desired", 1))),
            reason=str(fields.get("reason", "")),
            message=str(fields.get("message", "")),
            since=_time(fields, "since"),
            resizing=Resizing.from_json(fields["resizing"]) if fields.get("resizing") else None,
            unschedulable_since=_time(fields, "unschedulableSince"),
            adjusted_at=_time(fields, "adjustedAt"),
            selector=str(fields.get("selector", "")),
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self) -> dict[str, Any]:
        """The workers in the status' form."""
        fields: dict[str, Any] = {
            **self.others,
            "desired": self.desired,
            "replicas": self.replicas,
            "selector": self.selector or None,
            "reason": self.reason or None,
            "message": self.message or None,
            "since": times.rfc3339(self.since) if self.since else None,
            "resizing": self.resizing.to_json() if self.resizing else None,
            "unschedulableSince": times.rfc3339(self.unschedulable_since) if self.unschedulable_since else None,
            "adjustedAt": times.rfc3339(self.adjusted_at) if self.adjusted_at else None,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def short(self) -> int:
        """How many workers the group has too few."""
        return max(0, self.desired - self.replicas)


def workers_of(job: Job, written: Workers | None) -> Workers | None:
    """The workers of the job as its spec has it now; None where their number never changes.

    A changed number is tried at once: what was tried lately for want of room was another's.
    """
    replica = job.spec.replica_specs.worker
    if replica is None or (written is None and job.spec.elastic_policy is None):
        return None
    selector = f"{labels.JOB_UID}={job.metadata.uid},{labels.ROLE}={Role.WORKER.value}"
    if written is None:
        return Workers(replica.replicas, replica.replicas, selector=selector)
    if written.desired == replica.replicas:
        return replace(written, selector=selector)
    return replace(written, desired=replica.replicas, adjusted_at=None, selector=selector)


def sized(job: Job, workers: Workers | None) -> Job:
    """The job with as many workers as its group has."""
    replica = job.spec.replica_specs.worker
    if workers is None or replica is None or replica.replicas == workers.replicas:
        return job
    replicas = job.spec.replica_specs.model_copy(
        update={"worker": replica.model_copy(update={"replicas": workers.replicas})}
    )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"replica_specs": replicas})})


def as_it_is(job: Job) -> Job:
    """The job with as many workers as its status says that its group has, for whoever knows no situation."""
    written = job.status.get("workers")
    return sized(job, workers_of(job, Workers.from_json(written) if written else None))


def whole(moment: datetime) -> datetime:
    """To the second, as it will be read back."""
    return moment.replace(microsecond=0)


def _time(fields: Mapping[str, Any], name: str) -> datetime | None:
    return times.parse(fields[name]) if fields.get(name) else None
