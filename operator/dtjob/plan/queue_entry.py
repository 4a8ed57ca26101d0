"""A job's place in a queue of Kueue, as `status.queue` keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

WRITTEN = ("name", "workload", "uid", "clusterQueue", "podSets")
"""The fields of `status.queue` that this version knows."""


@dataclass(frozen=True)
class QueueEntry:
    """The job is queued, or was admitted out of a queue."""

    name: str
    """The LocalQueue."""
    workload: str = ""
    """The name of its Workload, empty before there is one."""
    uid: str = ""
    """The uid of the Workload with whose admission the job runs; empty while it waits."""
    cluster_queue: str = ""
    """Whose quota it runs on; empty while it waits."""
    pod_sets: Mapping[str, Any] = field(default_factory=dict)
    """What the pods of each role get with that admission (`placement.py`)."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Fields that a newer operator wrote; kept."""

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> QueueEntry:
        """The entry that `status.queue` holds."""
        return cls(
            name=fields.get("name", ""),
            workload=fields.get("workload", ""),
            uid=fields.get("uid", ""),
            cluster_queue=fields.get("clusterQueue", ""),
            pod_sets=fields.get("podSets", {}),
            others={name: value for name, value in fields.items() if name not in WRITTEN},
        )

    def to_json(self) -> dict[str, Any]:
        """The entry in the status' form."""
        fields = {
            **self.others,
            "name": self.name,
            "workload": self.workload,
            "uid": self.uid,
            "clusterQueue": self.cluster_queue,
            "podSets": dict(self.pod_sets),
        }
        return {name: value for name, value in fields.items() if value}

    @property
    def runs(self) -> bool:
        """Whether the job was admitted, and was not told to stop since."""
        return bool(self.uid)

    def admitted(self, uid: str, cluster_queue: str, pod_sets: Mapping[str, Any]) -> QueueEntry:
        """The entry of a job that was admitted with this Workload."""
        return replace(self, uid=uid, cluster_queue=cluster_queue, pod_sets=pod_sets)

    def waiting(self) -> QueueEntry:
        """The entry of a job that waits, again or for the first time."""
        return replace(self, uid="", cluster_queue="", pod_sets={})
