"""Writes a job's status, and tells the events that belong to it once it is written; where the cluster refuses it,
without what came from reports, so that the job goes on.

But for a new job's, the status is written before any action: were a status with a metric that the API server does not
take tried again and again, nothing would ever be done for that job.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtjob.controller.cluster import Cluster, ClusterError, JobKey, Refused, Stale
from dtjob.controller.observer import NOBODY, Observer
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

logger = logging.getLogger(__name__)

REPORTED = ("progress", "checkpoint", "evaluation")
"""The blocks of a status that reports fill."""
LONGEST_REASON = 512


@dataclass(frozen=True)
class _Unanswered:
    """A status that was sent, and nobody answered: it may be written or not."""

    job: Manifest
    status: dict[str, Any]
    events: Sequence[Event]


class StatusWriter:
    """Writes statuses to one cluster."""

    def __init__(self, cluster: Cluster, observer: Observer = NOBODY) -> None:
        self._cluster, self._observer = cluster, observer
        self._told: dict[JobKey, str] = {}
        self._unanswered: dict[JobKey, _Unanswered] = {}

    async def write(self, key: JobKey, job: Manifest, status: dict[str, Any], events: Sequence[Event] = ()) -> Manifest:
        """The job as stored with this status, or with the reported blocks that it had, or without them; its `events`
        are told then. Raises ClusterError: Refused where even that is not taken."""
        try:
            stored = await self._written(key, job, status)
        except (Refused, Stale):  # stale perhaps by what was sent before, and is yet to be heard of
            raise
        except ClusterError:
            self._unanswered[key] = _Unanswered(job, status, events)
            raise
        self._unanswered.pop(key, None)
        await self._tell_of(job, stored, events)
        return stored

    async def catch_up(self, key: JobKey, job: Manifest) -> None:
        """Tell of the last status of this job that nobody answered to, where it is there all the same by now."""
        sent = self._unanswered.get(key)
        if sent is None or job["metadata"]["resourceVersion"] == sent.job["metadata"]["resourceVersion"]:
            return
        del self._unanswered[key]
        if job.get("status") == sent.status:
            await self._tell_of(sent.job, job, sent.events)

    async def _tell_of(self, before: Manifest, job: Manifest, events: Sequence[Event]) -> None:
        self._observer.status_written(before.get("status") or {}, job.get("status") or {})
        for event in events:
            await self._cluster.emit(job, event)

    async def _written(self, key: JobKey, job: Manifest, status: dict[str, Any]) -> Manifest:
        try:
            stored = await self._cluster.write_status(job, status)
        except Refused as error:
            if not any(name in status for name in REPORTED):
                raise
            await self._tell(key, job, str(error))
        else:
            self._told.pop(key, None)
            return stored
        old = job.get("status") or {}
        reported = {name: old[name] for name in REPORTED if name in old}
        others = {name: value for name, value in status.items() if name not in REPORTED}
        if {**others, **reported} == old:
            return job
        try:
            return await self._cluster.write_status(job, {**others, **reported})
        except Refused:
            if not reported:
                raise
            return await self._cluster.write_status(job, others)

    def forget(self, key: JobKey) -> None:
        """Forget what was told of a job that is gone."""
        self._told.pop(key, None)
        self._unanswered.pop(key, None)

    async def _tell(self, key: JobKey, job: Manifest, why: str) -> None:
        """Say it once for each reason, not at every try."""
        why = why[:LONGEST_REASON]
        if self._told.get(key) == why:
            return
        self._told[key] = why
        logger.warning("%s/%s: the status is written without progress, as it was refused: %s", *key, why)
        message = f"The status is kept without progress, as the API server refuses what was reported: {why}"
        await self._cluster.emit(job, Event("Warning", "ProgressRefused", message))
