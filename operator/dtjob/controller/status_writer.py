# SPDX-License-Identifier: Apache-2.0
"""Status writer: writes the status of a job, and then its Events. If the cluster refuses a status, the writer leaves
out what reports brought.

Except for a new job, the status is written before any action. The API server may refuse a status with a metric. If that
status were tried again and again, nothing would ever be done for the job.
"""

import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from dtjob.controller.cluster import Cluster, ClusterError, Refused, Stale
from dtjob.controller.observer import NOBODY, Observer
from dtjob.controller.store import Memory, Unanswered
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

logger = logging.getLogger(__name__)

REPORTED = ("progress", "checkpoint", "evaluation")
"""The blocks of a status that reports fill."""
LONGEST_REASON = 512


class StatusWriter:
    """Writes statuses to one cluster."""

    def __init__(self, cluster: Cluster, observer: Observer = NOBODY) -> None:
        self._cluster, self._observer = cluster, observer

    async def write(
        self, memory: Memory, job: Manifest, status: dict[str, Any], events: Sequence[Event] = ()
    ) -> Manifest:
        """The job as stored with this status, or with the reported blocks that it had, or without them; its `events`
        are told then. `memory` is of this job. Raises ClusterError: Refused where even that is not taken."""
        try:
            stored = await self._written(memory, job, status)
        except (Refused, Stale):  # stale perhaps by what was sent before, and is yet to be heard of
            raise
        except ClusterError:
            memory.unanswered = Unanswered(job, status, events)
            raise
        memory.unanswered = None
        await self._emit_events(job, stored, events)
        return stored

    async def confirm(self, job: Manifest) -> None:
        """Write the status as it is, which changes nothing. Raises Gone if the job was deleted, and Stale if it has
        another version."""
        with contextlib.suppress(Refused):  # an API server compares the versions before it validates
            await self._cluster.write_status(job, job.get("status") or {})

    async def catch_up(self, memory: Memory, job: Manifest) -> None:
        """Tell of the last status of this job that nobody answered to, where it is there all the same by now."""
        sent = memory.unanswered
        if sent is None or job["metadata"]["resourceVersion"] == sent.job["metadata"]["resourceVersion"]:
            return
        memory.unanswered = None
        if job.get("status") == sent.status:
            await self._emit_events(sent.job, job, sent.events)

    async def _emit_events(self, before: Manifest, job: Manifest, events: Sequence[Event]) -> None:
        self._observer.status_written(before.get("status") or {}, job.get("status") or {})
        for event in events:
            await self._cluster.emit(job, event)

    async def _written(self, memory: Memory, job: Manifest, status: dict[str, Any]) -> Manifest:
        try:
            stored = await self._cluster.write_status(job, status)
        except Refused as error:
            if not any(name in status for name in REPORTED):
                raise
            await self._warn_once(memory, job, str(error))
        else:
            memory.progress_refused = ""
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

    async def _warn_once(self, memory: Memory, job: Manifest, why: str) -> None:
        """Say it once for each reason, not at every try."""
        why = why[:LONGEST_REASON]
        if memory.progress_refused == why:
            return
        memory.progress_refused = why
        where = f"{job['metadata'].get('namespace')}/{job['metadata']['name']}"
        logger.warning("%s: the status is written without progress, as it was refused: %s", where, why)
        message = f"The status is kept without progress, as the API server refuses what was reported: {why}"
        await self._cluster.emit(job, Event("Warning", "ProgressRefused", message))
