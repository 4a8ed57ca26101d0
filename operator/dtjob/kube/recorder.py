"""Events on jobs, recorded in the API server: new ones by POST, repetitions of earlier ones by PATCH."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from dtjob.controller.cluster import ClusterError
from dtjob.kube.api_error import ApiError
from dtjob.kube.correlator import Correlator, Told
from dtjob.kube.event import event_object, name_of, repetition
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

logger = logging.getLogger(__name__)

Call = Callable[[str, str, Any], Awaitable[dict[str, Any]]]
"""Makes a call, given its method, path and body; raises ClusterError."""


class Recorder:
    """Records the events of one process, through `call`."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._correlator = Correlator()

    async def record(self, job: Manifest, event: Event, now: datetime) -> None:
        """Record the event on the job, or count it where it was told lately. Best effort: a failure is only logged."""
        metadata = job["metadata"]
        told = self._correlator.tell(metadata["uid"], event, now)
        path = f"/api/v1/namespaces/{metadata['namespace']}/events"
        try:
            if told.count == 1 or not await self._repeated(f"{path}/{name_of(job, told)}", told, now):
                await self._call("POST", path, event_object(job, told, now))
        except ClusterError as error:
            logger.warning(
                "%s/%s: event %s was not recorded: %s", metadata["namespace"], metadata["name"], event.reason, error
            )

    async def _repeated(self, path: str, told: Told, now: datetime) -> bool:
        """Count the event that is there; whether it is."""
        try:
            await self._call("PATCH", path, repetition(told, now))
        except ApiError as error:
            if error.code == 404:  # it was never recorded, or has expired
                return False
            raise
        return True
