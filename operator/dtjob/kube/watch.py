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
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.client import Credentials
from dtjob.objects import labels

IDLE_SECONDS = 0.01
"""How long kopf keeps an object's worker: they hold no state for us (measured: 460 → 190 µs an event, 243 → 103 MB)."""

LIST_CHUNK = 100
"""Objects that kopf takes in at once while it lists. Each has a task of its own then, and all of them one turn of the
event loop."""


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
    chosen.watching.label_selectors["pods"] = labels.JOB_NAME
    return chosen


def registry(
    store: Store, queue: WorkQueue[JobKey], credentials: Callable[[], Awaitable[Credentials]]
) -> kopf.OperatorRegistry:
    """The two handlers, jobs and their pods; and the login, which is our own connection's."""
    made = kopf.OperatorRegistry()

    # `event` is the object as it came; kopf's views of it take 30 µs to be read.
    async def on_job(event: kopf.RawEvent, **_: Any) -> None:
        take_in(store, queue, event["type"], {**event["object"], "apiVersion": API_VERSION, "kind": KIND})

    async def on_pod(event: kopf.RawEvent, **_: Any) -> None:
        take_in(store, queue, event["type"], {**event["object"], "apiVersion": "v1", "kind": "Pod"})

    async def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(**dataclasses.asdict(await credentials()))

    kopf.on.login(registry=made)(login)
    kopf.on.event(GROUP, VERSION, PLURAL, registry=made)(on_job)
    kopf.on.event("v1", "pods", registry=made)(on_pod)  # those with our label, by `settings`
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
