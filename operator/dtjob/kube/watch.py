"""kopf wiring and nothing else: watch events go to the store, and the job that they concern into the queue.

Only `on.event` handlers: change handlers, timers, daemons and finalizers would cost 3 to 7 more PATCHes a job, bloat
annotations, and block deletion while the operator is away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import kopf

from dtjob.api.job import API_VERSION, GROUP, KIND, PLURAL, VERSION
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace import gather_seconds
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.client import KINDS, USER_AGENT, Credentials
from dtjob.objects import labels

IDLE_SECONDS = 0.01
"""How long kopf keeps an object's worker: they hold no state for us (measured: 460 → 190 µs an event, 243 → 103 MB)."""

LIST_CHUNK = 100
"""Objects that kopf takes in at once while it lists. Each has a task of its own then, and all of them one turn of the
event loop."""


class Connection(kopf.ConnectionInfo):
    """kopf's own connection, which says that dtjob is calling."""

    def as_http_headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {**super().as_http_headers(), "User-Agent": USER_AGENT}


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
    for _, plural in (KINDS[kind] for kind in LISTED_KINDS):
        chosen.watching.label_selectors[plural] = labels.JOB_NAME
    return chosen


def registry(
    store: Store, queue: WorkQueue[JobKey], credentials: Callable[[], Awaitable[Credentials]]
) -> kopf.OperatorRegistry:
    """The handlers, of jobs and of their children; and the login, which is our own connection's."""
    made = kopf.OperatorRegistry()

    # `event` is the object as it came; kopf's views of it take 30 µs to be read.
    async def on_job(event: kopf.RawEvent, **_: Any) -> None:
        take_in(store, queue, event["type"], {**event["object"], "apiVersion": API_VERSION, "kind": KIND})

    def on_child(kind: str) -> Callable[..., Awaitable[None]]:
        async def on_event(event: kopf.RawEvent, **_: Any) -> None:
            take_in(store, queue, event["type"], {**event["object"], "apiVersion": KINDS[kind][0], "kind": kind})

        return on_event

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return Connection(**dataclasses.asdict(await credentials()))

    kopf.on.login(registry=made)(login)
    kopf.on.event(GROUP, VERSION, PLURAL, registry=made)(on_job)
    for kind in LISTED_KINDS:  # those with our label, by `settings`
        kopf.on.event(*KINDS[kind], id=f"on_{kind}", registry=made)(on_child(kind))
    return made


def take_in(store: Store, queue: WorkQueue[JobKey], type_: str | None, manifest: dict[str, Any]) -> None:
    """One watch event (`type_` is None for what was there when the watch began)."""
    key = store.remove(manifest) if type_ == "DELETED" else store.apply(manifest)
    if key is None:
        return
    if manifest["kind"] == KIND:
        queue.add(key)
    else:
        queue.add_gathered(key, gather_seconds(store.size(key)))
