"""Events on jobs, recorded in the API server: new ones by POST, repetitions of earlier ones by PATCH."""

from __future__ import annotations

import asyncio
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
PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Before further tries where the API server does not answer, or has too much to do: a minute, for it to start anew."""


class Recorder:
    """Records the events of one process, through `call`."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._correlator = Correlator()

    async def record(self, job: Manifest, event: Event, now: datetime) -> None:
        """Record the event on the job, or count it where it was told lately. Best effort: tried for a minute where the
        failure may pass, and else only logged."""
        metadata = job["metadata"]
        told = self._correlator.tell(metadata["uid"], event, now)
        for pause in (*PAUSES_SECONDS, None):
            try:
                await self._record(job, told, now)
                return
            except ClusterError as error:
                if pause is None or not _may_pass(error):
                    where = f"{metadata['namespace']}/{metadata['name']}"
                    logger.warning("%s: event %s was not recorded: %s", where, event.reason, error)
                    return
                await asyncio.sleep(max(pause, error.retry_after))

    async def _record(self, job: Manifest, told: Told, now: datetime) -> None:
        path = f"/api/v1/namespaces/{job['metadata']['namespace']}/events"
        if told.count > 1 and await self._repeated(f"{path}/{name_of(job, told)}", told, now):
            return
        try:
            await self._call("POST", path, event_object(job, told, now))
        except ApiError as error:
            if error.reason != "AlreadyExists":  # by an earlier try, of which no answer came
                raise

    async def _repeated(self, path: str, told: Told, now: datetime) -> bool:
        """Count the event that is there; whether it is."""
        try:
            await self._call("PATCH", path, repetition(told, now))
        except ApiError as error:
            if error.code == 404:  # it was never recorded, or has expired
                return False
            raise
        return True


def _may_pass(error: ClusterError) -> bool:
    return not isinstance(error, ApiError) or error.code in (429, 503)
