"""Jobs that this version cannot run, let in by older rules: said in their status, once, and otherwise left alone."""

from __future__ import annotations

from pydantic import ValidationError

from dtjob.api.phase import Phase
from dtjob.controller.cluster import Cluster
from dtjob.controller.store import Store
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

REASON = "InvalidSpec"


def words_of(error: ValidationError) -> str:
    """Which field is wrong, and what to do about it."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}; delete the job and apply it again with this mended"


async def say_invalid(cluster: Cluster, store: Store, manifest: Manifest, message: str) -> None:
    """Say it in the job's status and by an event, unless it is said there. Raises ClusterError."""
    old = manifest.get("status") or {}
    if old.get("reason") == REASON and old.get("message") == message:
        return
    status = {**old, "phase": old.get("phase", Phase.PENDING.value), "reason": REASON, "message": message}
    store.apply(await cluster.write_status(manifest, status))
    await cluster.emit(manifest, Event("Warning", REASON, message))
