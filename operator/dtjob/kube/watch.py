"""kopf wiring and nothing else: watch events go to the store, and the job that they concern into the queue.

They do so on their way to kopf (`streams.py`).

Only `on.event` handlers: change handlers, timers, daemons and finalizers would cost 3 to 7 more PATCHes a job, bloat
annotations, and block deletion while the operator is away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import aiohttp

from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace import SETTLE_SECONDS, gather_seconds
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube import streams
from dtjob.kube.client import CALL_TIMEOUT_SECONDS, CONNECT_TIMEOUT_SECONDS, USER_AGENT, Credentials
from dtjob.kube.kinds import KINDS
from dtjob.kube.libraries import kopf
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest

WATCHED_KINDS = (KIND, *LISTED_KINDS)

IDLE_SECONDS = 0.01
"""How long kopf keeps the worker of an object that reaches it: they hold no state for us."""

ERROR_BACKOFFS = (1, 1, 2, 3, 5, 5, 5, 5)
"""Seconds between the tries of a call of kopf's that was answered with 403, 429 or 5xx, or not at all."""

LIST_CHUNK = 100
"""Objects that are taken in at once while kopf lists, in one turn of the event loop."""


class NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing: no handler of ours wants a diff, and kopf's annotation can make an object undeletable."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None) -> kopf.BodyEssence:
        """Nothing of the object is to be compared. (kopf's own copies all of it at every event.)"""
        return {}

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Nothing was stored."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


class NoProgress(kopf.ProgressStorage):
    """Remembers nothing: an event handler has no progress that could be lost."""

    def fetch(self, *, key: Any, body: kopf.Body) -> Any:
        """Nothing was stored."""
        return None

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Store nothing."""

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """There is nothing to remove."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: Any) -> None:
        """Leave the object alone."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """There is nothing to remove."""
        return essence


def settings() -> kopf.OperatorSettings:
    """kopf as an event source, and no more."""
    chosen = kopf.OperatorSettings()
    chosen.persistence.diffbase_storage = NoDiffBase()
    chosen.persistence.progress_storage = NoProgress()
    chosen.queueing.idle_timeout = IDLE_SECONDS
    chosen.scanning.disabled = True
    chosen.posting.enabled = False
    # The process outlives its watches: kopf would kill it so long after they end.
    chosen.process.ultimate_exiting_timeout = None
    chosen.watching.chunk_size = LIST_CHUNK
    # A LIST over a connection that is half open waits so long; kopf's own is five minutes.
    chosen.networking.request_timeout = CALL_TIMEOUT_SECONDS
    chosen.networking.connect_timeout = CONNECT_TIMEOUT_SECONDS
    # kopf's own go up to 21 s, so long after the API server is back; where they are over, the watches begin anew.
    chosen.networking.error_backoffs = ERROR_BACKOFFS
    # A login that failed (the token's file was being replaced) would be tried again after a minute.
    chosen.execution.default_backoff = ERROR_BACKOFFS[0]
    for _, plural in (KINDS[kind] for kind in LISTED_KINDS):
        chosen.watching.label_selectors[plural] = labels.JOB_NAME
    return chosen


@dataclasses.dataclass(frozen=True, kw_only=True)
class Login(kopf.AiohttpSession):
    """Equal to another with the same credentials: kopf does not try again at once what was just answered with 401."""

    aiohttp_session: aiohttp.ClientSession = dataclasses.field(compare=False)
    known: Credentials


def registry(
    store: Store,
    queue: WorkQueue[JobKey],
    credentials: Callable[[], Awaitable[Credentials]],
    listed: streams.Listed = lambda: None,
) -> kopf.OperatorRegistry:
    """The handlers, of jobs and of their children; and the login, which is our own connection's."""
    made = kopf.OperatorRegistry()

    def take(kind: str, happened: str | None, found: Manifest) -> None:
        take_in(store, queue, happened, {**found, "apiVersion": KINDS[kind][0], "kind": kind})

    def on(kind: str) -> Callable[..., Awaitable[None]]:
        # For what reaches kopf all the same. `event` is the object as it came; kopf's views of it cost 30 µs.
        async def on_event(event: kopf.RawEvent, **_: Any) -> None:
            take(kind, event["type"], dict(event["object"]))

        return on_event

    last: list[aiohttp.ClientSession] = []

    async def login(**_: Any) -> kopf.AiohttpSession:
        known = await credentials()
        while last:  # kopf closes those that it takes
            await last.pop().close()
        last.append(session(known, take, listed))
        return Login(server=known.server, aiohttp_session=last[0], known=known)

    kopf.on.login(registry=made)(login)
    for kind in WATCHED_KINDS:  # those with our label, by `settings`
        kopf.on.event(*KINDS[kind], id=f"on_{kind}", registry=made)(on(kind))
    return made


def session(known: Credentials, take: streams.Take, listed: streams.Listed = lambda: None) -> aiohttp.ClientSession:
    """What kopf calls through: with our connection's credentials, as dtjob, and with each object going to `take`."""
    info = kopf.ConnectionInfo(
        **{name: value for name, value in dataclasses.asdict(known).items() if name not in ("proxy", "server_hostname")}
    )

    async def named(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        request.server_hostname = known.server_hostname
        return await handler(request)

    served = {streams.served_at(*KINDS[kind]): kind for kind in WATCHED_KINDS}
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers={**info.as_http_headers(), "User-Agent": USER_AGENT},
        proxy=known.proxy,
        middlewares=(named,) if known.server_hostname else (),
        response_class=streams.response_class(served, take, listed),
    )


def take_in(store: Store, queue: WorkQueue[JobKey], type_: str | None, manifest: dict[str, Any]) -> None:
    """One watch event (`type_` is None for what was there when the watch began)."""
    key = store.remove(manifest) if type_ == "DELETED" else store.apply(manifest)
    if key is None:
        return
    if manifest["kind"] == KIND:
        queue.add(key)
    else:
        settle = 0.0 if type_ == "DELETED" or _is_urgent(manifest) else SETTLE_SECONDS
        queue.add_gathered(key, gather_seconds(store.size(key)), settle)


def _is_urgent(manifest: Manifest) -> bool:
    """Whether this pod has failed; or has finished and is about to go, after which nobody could tell that it had."""
    phase = (manifest.get("status") or {}).get("phase")
    return phase == "Failed" or (phase == "Succeeded" and "deletionTimestamp" in manifest["metadata"])
