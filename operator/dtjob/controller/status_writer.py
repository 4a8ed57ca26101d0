# SPDX-License-Identifier: Apache-2.0
"""Status writer: writes the status of a job, and then its Events."""

import contextlib
from collections.abc import Sequence
from typing import Any

from dtjob.controller.cluster import Cluster, ClusterError, Refused
from dtjob.controller.observer import NOBODY, Observer
from dtjob.controller.store import Memory, Unanswered
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event


class StatusWriter:
    """Writes statuses to one cluster."""

    def __init__(self, cluster: Cluster, observer: Observer = NOBODY) -> None:
        self._cluster, self._observer = cluster, observer

    async def write(
        self, memory: Memory, job: Manifest, status: dict[str, Any], events: Sequence[Event] = ()
    ) -> Manifest:
        """The job as stored with this status; its `events` are told then. `memory` is of this job. Raises
        ClusterError."""
        try:
            stored = await self._cluster.write_status(job, status)
        except Refused:
            raise
        except ClusterError:  # Stale too: where a connection breaks, aiohttp sends a PUT again, and the first may count
            memory.note_unanswered(Unanswered(job, status, events))
            raise
        memory.unanswered.clear()
        await self._emit_events(job, stored, events)
        return stored

    async def confirm(self, job: Manifest) -> None:
        """Write the status as it is, which changes nothing. Raises Gone if the job was deleted, and Stale if it has
        another version."""
        with contextlib.suppress(Refused):  # an API server compares the versions before it validates
            await self._cluster.write_status(job, job.get("status") or {})

    async def catch_up(self, memory: Memory, job: Manifest) -> None:
        """Tell of a status of this job that nobody confirmed, where it is there all the same by now. All of them were
        sent for one version, so that one at most was taken."""
        sent = memory.unanswered
        if not sent or job["metadata"]["resourceVersion"] == sent[-1].job["metadata"]["resourceVersion"]:
            return
        memory.unanswered = []
        if taken := next((one for one in sent if job.get("status") == one.status), None):
            await self._emit_events(taken.job, job, taken.events)

    async def _emit_events(self, before: Manifest, job: Manifest, events: Sequence[Event]) -> None:
        self._observer.status_written(before.get("status") or {}, job.get("status") or {})
        for event in events:
            await self._cluster.emit(job, event)
