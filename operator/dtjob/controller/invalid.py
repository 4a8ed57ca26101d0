# SPDX-License-Identifier: Apache-2.0
"""Invalid jobs: a job whose spec cannot be read, and what its status says then.

If a stored spec cannot be read, the job's status says so once, and the job is left alone. If the operator stumbles over
a job, it tries again, which an event says.
"""

from datetime import datetime

from pydantic import ValidationError

from dtjob.api.status.status import Status
from dtjob.controller.cluster import Cluster
from dtjob.controller.store import Store
from dtjob.crd.answers.field_errors import in_words
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event
from dtjob.plan.record.status import INVALID_SPEC, SPEC_ACCEPTED, condition, refuse_spec

BUG = "InternalError"
BUGS_BEFORE_SAID = 3
"""Failures in a row after which it is said: one that passes by itself needs nobody."""


def words_of(error: ValidationError) -> str:
    """Which field is wrong, and what to do about it."""
    return f"{in_words(error)[0]}; delete the job and apply it again with this corrected"


def words_of_bug(error: Exception) -> str:
    """What the operator stumbled over, for whoever looks at the job."""
    said = f"{type(error).__name__}: {str(error)[:500]}"
    return f"the operator cannot go on with this job and tries again: {said}; please report it, with the operator's log"


async def say_invalid(cluster: Cluster, store: Store, manifest: Manifest, message: str, now: datetime) -> None:
    """Say it in the job's status and by an event, unless it is said there. Raises ClusterError."""
    old = Status.read(manifest.get("status") or {})
    new = refuse_spec(old, manifest["metadata"].get("generation", 0), message, now)
    if new == old:
        return
    store.apply(await cluster.write_status(manifest, new.to_json()))
    said = condition(old.conditions, SPEC_ACCEPTED)
    if said is None or said.holds or said.message != message:
        await cluster.emit(manifest, Event("Warning", INVALID_SPEC, message))
