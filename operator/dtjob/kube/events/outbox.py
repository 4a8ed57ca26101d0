# SPDX-License-Identifier: Apache-2.0
"""Outbox: Events that are to be recorded. Nobody waits until they are.

An event is a call like any other. Were it waited for, the pods of a new job would come a call later, of many new jobs
each as much later as their events take the API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

logger = logging.getLogger(__name__)

Record = Callable[[Manifest, Event, datetime], Awaitable[None]]
"""Records an event on a job, told at that time."""
LONGEST_LINE = 1000
"""Events that wait, as with client-go. One more is dropped, and said in the log: where the API server takes no events,
jobs go on."""
LAST_SECONDS = 5.0
"""How long events are still recorded once the process is told to end."""


class Outbox:
    """The events of one process, recorded one after another: jobs that fail by the hundred leave the API server to
    those that begin. To be closed at the end."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._line = asyncio.Queue[tuple[Manifest, Event, datetime]](LONGEST_LINE)
        self._task: asyncio.Task[None] | None = None
        self._left = 0
        """Events that are not recorded yet."""

    def put(self, job: Manifest, event: Event) -> None:
        """Have the event recorded soon."""
        if self._task is None:
            self._task = asyncio.create_task(self._send(), name="events")
        try:
            self._line.put_nowait((job, event, datetime.now(UTC)))
        except asyncio.QueueFull:
            metadata = job["metadata"]
            where = f"{metadata['namespace']}/{metadata['name']}"
            logger.warning(
                "%s: event %s is dropped: %d others wait: %s", where, event.reason, LONGEST_LINE, event.message
            )
        else:
            self._left += 1

    async def close(self) -> None:
        """Record what waits, for LAST_SECONDS at most, and no more after that."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await self._line.join()
        if self._left:
            logger.warning("%d events were not recorded, as dtjob ends", self._left)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self) -> None:
        while True:
            job, event, when = await self._line.get()
            try:
                await self._record(job, event, when)
            except Exception:  # one event is no reason to record no other
                logger.exception("a bug in dtjob, in recording %s", event.reason)
            self._left -= 1
            self._line.task_done()
