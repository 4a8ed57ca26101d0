# SPDX-License-Identifier: Apache-2.0
"""Handlers of kopf: it logs in as the operator's own connection does, and passes events of jobs on.

All other kinds have `informer.py`: kopf gives each event a task, a queue and a look for what has changed. That is
little for a job's events, and most of what the events of thousands of pods would cost.

Only `on.event` is used. Change handlers, timers, daemons and finalizers would cost 3 to 7 more PATCHes a job and bloat
annotations. They would block deletion while the operator is away. `on.probe` is not used: kopf answers probes only
while it runs, and an operator that stands by does not run it (`endpoint.py`).
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp
import kopf

from dtjob.api.job import GROUP, KIND, PLURAL, VERSION
from dtjob.kube.calls.client import CALL_TIMEOUT_SECONDS, CONNECT_TIMEOUT_SECONDS, Kube
from dtjob.kube.calls.kinds import typed
from dtjob.objects.manifest import Manifest

Take = Callable[[str | None, Manifest], None]
"""Takes in a job, given what happened to it: ADDED, MODIFIED, DELETED, or None if kopf's LIST has it."""

IDLE_SECONDS = 0.01
"""How long kopf keeps the worker of a job: it has no state for us."""

ERROR_BACKOFFS = (1, 1, 2, 3, 5, 5, 5, 5)
"""Seconds between the tries of a call of kopf's that was answered with 403, 429 or 5xx, or not at all. By default kopf
waits up to 21 s, also after the API server is back."""

LIST_CHUNK = 100
"""Jobs that kopf lists in one call."""


class NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing of a job: no handler of ours wants a diff, and kopf would copy all of a job at every event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None) -> kopf.BodyEssence:
        """Nothing of the job is to be compared."""
        return {}

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Nothing was stored."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Login(kopf.AiohttpSession):
    """Equal to another with the same credentials: kopf does not try again at once what was just answered with 401."""

    aiohttp_session: aiohttp.ClientSession = dataclasses.field(compare=False)
    credentials: str


def registry(kube: Kube, take: Take) -> kopf.OperatorRegistry:
    """The handlers. Each job that kopf tells of goes to `take`."""
    made = kopf.OperatorRegistry()
    sessions: list[aiohttp.ClientSession] = []

    @kopf.on.startup(registry=made)
    async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        choose(settings)

    @kopf.on.login(registry=made)
    async def login(**_: Any) -> kopf.AiohttpSession:
        await close()
        credentials, session = await kube.session()
        sessions.append(session)
        return Login(server=kube.server, aiohttp_session=session, credentials=credentials)

    @kopf.on.cleanup(registry=made)
    async def log_out(**_: Any) -> None:
        await close()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=made)
    async def job_event(event: kopf.RawEvent, **_: Any) -> None:
        take(event["type"], typed(KIND, dict(event["object"])))

    async def close() -> None:
        while sessions:
            await sessions.pop().close()

    return made


def choose(settings: kopf.OperatorSettings) -> None:
    """kopf as a source of events, and no more."""
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.scanning.disabled = True
    settings.posting.enabled = False
    # The process outlives its watches: kopf would kill it so long after they end.
    settings.process.ultimate_exiting_timeout = None
    settings.watching.chunk_size = LIST_CHUNK
    # A LIST over a connection that is half open waits so long; kopf's own is five minutes.
    settings.networking.request_timeout = CALL_TIMEOUT_SECONDS
    settings.networking.connect_timeout = CONNECT_TIMEOUT_SECONDS
    settings.networking.error_backoffs = ERROR_BACKOFFS
    # A login that failed (the token's file was being replaced) would be tried again after a minute.
    settings.execution.default_backoff = ERROR_BACKOFFS[0]
