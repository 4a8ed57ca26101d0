"""Writes a job's status; where the cluster refuses it, without what came from reports, so that the job goes on.

But for a new job's, the status is written before any action: were a status with a metric that the API server does not
take tried again and again, nothing would ever be done for that job.
"""

from __future__ import annotations

import logging
from typing import Any

from dtjob.controller.cluster import Cluster, JobKey, Refused
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

logger = logging.getLogger(__name__)

REPORTED = ("progress", "checkpoint", "evaluation")
"""The blocks of a status that reports fill."""
LONGEST_REASON = 512


class StatusWriter:
    """Writes statuses to one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._told: dict[JobKey, str] = {}

    async def write(self, key: JobKey, job: Manifest, status: dict[str, Any]) -> Manifest:
        """The job as stored with this status, or with the reported blocks that it had, or without them. Raises
        ClusterError: Refused where even that is not taken."""
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

    async def _tell(self, key: JobKey, job: Manifest, why: str) -> None:
        """Say it once for each reason, not at every try."""
        why = why[:LONGEST_REASON]
        if self._told.get(key) == why:
            return
        self._told[key] = why
        logger.warning("%s/%s: the status is written without progress, as it was refused: %s", *key, why)
        message = f"The status is kept without progress, as the API server refuses what was reported: {why}"
        await self._cluster.emit(job, Event("Warning", "ProgressRefused", message))
