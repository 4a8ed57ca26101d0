# SPDX-License-Identifier: Apache-2.0
"""Events of jobs: which repeat earlier ones, how each looks in `kubectl describe`, and the calls that record it.

The rules are those of client-go's EventCorrelator. The same event again within ten minutes is the one that is there,
counted once more. Of one reason, at most ten different events are recorded within ten minutes; what comes then is
counted as one.

Nobody waits until an event is recorded. An event is a call like any other. If it were waited for, the pods of a new job
would come a call later. With many new jobs, each job's pods would come later by the time that all these events take.
"""

import asyncio
import contextlib
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import API_VERSION, KIND
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.backoff import Backoff
from dtjob.kube.api_error import ApiError
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

logger = logging.getLogger(__name__)

WINDOW = timedelta(minutes=10)
MOST_ALIKE = 10
REMEMBERED = 4096
"""Reasons of jobs that are remembered; the API server forgets events as well, after an hour."""
COMBINED = "(combined from similar events): "


@dataclass
class Recorded:
    """An event as it is recorded: under which suffix of its name, how often it has happened, and when."""

    event: Event
    suffix: str
    count: int
    first: datetime
    last: datetime


class Correlator:
    """Remembers what was recorded lately. One for each process: another begins anew."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], dict[str, Recorded]] = OrderedDict()

    def correlate(self, job_uid: str, event: Event, now: datetime, version: str = "") -> Recorded:
        """How to record this event of a job: as a new one where its count is 1, else in place of the earlier one. The
        answer holds until the next event. `version`: the job's resourceVersion."""
        key = (job_uid, event.type, event.reason)
        alike = {text: one for text, one in self._known.get(key, {}).items() if now - one.last <= WINDOW}
        self._known[key] = alike
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        message = event.message
        if message not in alike and len(alike) >= MOST_ALIKE:
            message, event = COMBINED, replace(event, message=COMBINED + message)  # the newest of them is what it says
        recorded = alike.setdefault(message, Recorded(event, _suffix(job_uid, version, event, now), 0, now, now))
        recorded.event, recorded.count, recorded.last = event, recorded.count + 1, now
        return recorded


def _suffix(job_uid: str, version: str, event: Event, now: datetime) -> str:
    """The same for an operator that begins and tells again what the last one has told of this version of the job."""
    told = (job_uid, version, event.type, event.reason, event.message, now.timestamp() // WINDOW.total_seconds())
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


COMPONENT = "dtjob"
LONGEST_MESSAGE = 1024
"""The API server's limit for an event's message."""
LONGEST_WARNING = 400
"""Characters of a warning that go into a job's status."""


def name_of(job: Manifest, recorded: Recorded) -> str:
    """The event's name, which no other event of the job has."""
    return f"{job['metadata']['name']}.{recorded.suffix}"


def event_object(job: Manifest, recorded: Recorded) -> Manifest:
    """The core/v1 Event. `job` is the job as stored."""
    metadata = job["metadata"]
    involved = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name_of(job, recorded), "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": API_VERSION, "kind": KIND, **involved},
        "type": recorded.event.type,
        "reason": recorded.event.reason,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": times.rfc3339(recorded.first),
        **repetition(recorded),
    }


def repetition(recorded: Recorded) -> dict[str, Any]:
    """What of a recorded event changes when it happens again."""
    return {
        "message": recorded.event.message[:LONGEST_MESSAGE],
        "lastTimestamp": times.rfc3339(recorded.last),
        "count": recorded.count,
    }


def newest_warning(events: Iterable[Manifest]) -> str:
    """Reason and message of the newest of these events of a pod, in one line; empty if there is none. Not the
    scheduler's: a pod that is asked about has a node."""
    others = [one for one in events if one.get("reason") != "FailedScheduling"]
    if not others:
        return ""
    newest = max(others, key=_happened)
    return " ".join(f"{newest.get('reason', '')}: {newest.get('message', '')}".split())[:LONGEST_WARNING]


def _happened(event: Manifest) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


Call = Callable[[str, str, Any], Awaitable[dict[str, Any]]]
"""Makes a call, given its method, path and body; raises ClusterError."""
PAUSE = Backoff(1.0, 15.0)
"""Before further tries where the API server does not answer, or has too much to do. No answer can ask for more: all
other events wait meanwhile."""
LONGEST_LINE = 1000
"""Events that wait, as with client-go. One more is dropped, and said in the log: where the API server takes no events,
jobs go on."""
FOR_WARNINGS = 500
"""Places of the line that only Warnings have: a lost zone brings many Normal events, and Warnings say what to do."""
LAST_SECONDS = 5.0
"""How long events are still recorded once the process is told to end."""
TRIES = 8
TRIED_FOR = timedelta(seconds=60)
"""From when it was told on, for an API server to start anew. What was told earlier is tried once: where the calls of
one namespace hang, each of its events holds up the others for one call."""


class Recorder:
    """Records the events of one process through `call`, one after another: jobs that fail by the hundred leave the API
    server to those that begin. To be closed at the end."""

    def __init__(self, call: Call, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._call = call
        self._clock = clock
        self._correlator = Correlator()
        self._line = asyncio.Queue[tuple[Manifest, Event, datetime]]()
        self._task: asyncio.Task[None] | None = None
        self._left = 0
        """Events that are not recorded yet."""

    def put(self, job: Manifest, event: Event) -> None:
        """Have the event recorded soon."""
        if self._task is None:
            self._task = asyncio.create_task(self._send(), name="events")
        if self._line.qsize() >= (LONGEST_LINE if event.type == "Warning" else LONGEST_LINE - FOR_WARNINGS):
            said = "%s/%s: event %s is dropped: %d others wait: %s"
            logger.warning(said, *_key(job), event.reason, self._line.qsize(), event.message)
            return
        self._line.put_nowait((job, event, datetime.now(UTC)))
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
                await self.record(job, event, when)
            except Exception:  # one event is no reason to record no other
                logger.exception("a bug in dtjob, in recording %s", event.reason)
            self._left -= 1
            self._line.task_done()

    async def record(self, job: Manifest, event: Event, now: datetime) -> None:
        """Record the event, which was told at `now`, on the job, or count it where it was recorded lately. Best effort:
        tried for TRIED_FOR where the failure may pass, and else only logged."""
        metadata = job["metadata"]
        recorded = self._correlator.correlate(metadata["uid"], event, now, metadata["resourceVersion"])
        for tries in range(1, TRIES + 1):
            try:
                await self._record(job, recorded)
                return
            except ClusterError as error:
                late = self._clock() >= now + TRIED_FOR
                may_pass = not isinstance(error, ApiError) or error.code == 429 or error.code >= 500
                if tries == TRIES or late or not may_pass:
                    logger.warning("%s/%s: event %s was not recorded: %s", *_key(job), event.reason, error)
                    return
                await asyncio.sleep(min(max(PAUSE.after(tries), error.retry_after), PAUSE.longest))

    async def _record(self, job: Manifest, recorded: Recorded) -> None:
        """Count the event that is there, or create it where there is none: never recorded, or expired."""
        path = f"/api/v1/namespaces/{job['metadata']['namespace']}/events"
        try:
            if recorded.count > 1:
                await self._call("PATCH", f"{path}/{name_of(job, recorded)}", repetition(recorded))
                return
        except ApiError as error:
            if error.code != 404:
                raise
        try:
            await self._call("POST", path, event_object(job, recorded))
        except ApiError as error:
            if error.reason != "AlreadyExists":  # by an earlier try, of which no answer came, or by an earlier operator
                raise


def _key(job: Manifest) -> JobKey:
    return job["metadata"]["namespace"], job["metadata"]["name"]
