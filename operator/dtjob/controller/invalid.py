"""Jobs that this version cannot run.

If a stored spec cannot be read, the job's status says so once, and the job is left alone. If the operator stumbles over
a job, it tries again, which an event says.
"""

from __future__ import annotations

from pydantic import ValidationError

from dtjob.api.phase import Phase
from dtjob.controller.cluster import Cluster
from dtjob.controller.store import Store
from dtjob.crd.problems import in_words
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event

INVALID, BUG = "InvalidSpec", "InternalError"
BUGS_BEFORE_SAID = 3
"""Failures in a row after which it is said: one that passes by itself needs nobody."""


def words_of(error: ValidationError) -> str:
    """Which field is wrong, and what to do about it."""
    return f"{in_words(error)[0]}; delete the job and apply it again with this mended"


def words_of_bug(error: Exception) -> str:
    """What the operator stumbled over, for whoever looks at the job."""
    said = f"{type(error).__name__}: {str(error)[:500]}"
    return f"the operator cannot go on with this job and tries again: {said}; please report it, with the operator's log"


async def say_invalid(cluster: Cluster, store: Store, manifest: Manifest, message: str) -> None:
    """Say it in the job's status and by an event, unless it is said there. Raises ClusterError."""
    old = manifest.get("status") or {}
    if old.get("reason") == INVALID and old.get("message") == message:
        return
    status = {**old, "phase": old.get("phase", Phase.PENDING.value), "reason": INVALID, "message": message}
    store.apply(await cluster.write_status(manifest, status))
    await cluster.emit(manifest, Event("Warning", INVALID, message))
