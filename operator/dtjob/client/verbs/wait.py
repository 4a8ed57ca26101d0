# SPDX-License-Identifier: Apache-2.0
"""Wait until a job is as one wants it."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.bad_input import BadInput
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.errors import JobFailed, NotFound, TimedOut
from dtjob.client.verbs.words import is_being_deleted, is_stuck, phase_of, summary

Object = Mapping[str, Any]
END, DELETED = "End", "Deleted"
WANTED = (END, "Running", "Suspended", "Complete", "Failed", "FirstStep", "Checkpoint", DELETED)
_PASSING = ("Running", "Suspended")
"""What a job is for a while. The status of a job that is being deleted says it still."""
_WITHOUT_THE_USER = (DELETED, "Suspended")
"""What a job reaches also if its image is missing."""


def check_wanted(word: str) -> str:
    """The state as it is written here, whatever its case. Raises BadInput."""
    for known in WANTED:
        if word.lower() == known.lower() or (word.lower() == "succeeded" and known == "Complete"):
            return known
    raise BadInput(f"--for: {word} is none of {', '.join(WANTED)}")


def wait(
    cluster: Cluster,
    name: str,
    wanted: str = END,
    seconds: float | None = None,
    uid: str | None = None,
    check: Callable[[Object, str], None] | None = None,
) -> Object | None:
    """The job once it is so, None once it is deleted.

    - wanted: one of WANTED. uid: of the job that is meant, if it is known.
    - check: raises an error for a job that is not waited for any more. None: `check_can_reach`.

    Raises JobFailed if the job cannot reach the state any more or goes on only if its user does something, TimedOut
    after so many seconds, and NotFound.
    """
    phase = "not there"
    until = math.inf if seconds is None else time.monotonic() + seconds
    try:
        for job in changes(cluster, KIND, name, until):
            if job is None or job["metadata"]["uid"] != (uid := uid or job["metadata"]["uid"]):
                if wanted == DELETED:
                    return None
                raise JobFailed(f"{name}: deleted")
            phase = phase_of(job)
            deleted = is_being_deleted(job)
            if is_reached(job, wanted) and not (deleted and wanted in _PASSING):
                return job
            if deleted and wanted != DELETED:
                raise JobFailed(f"{name}: is being deleted")
            (check or check_can_reach)(job, wanted)
    except NotFound as error:
        if wanted != DELETED or not error.reason:  # without a reason the cluster has no such kind
            raise
        return None
    raise TimedOut(f"{name}: {phase} after {seconds:g} s")


def check_can_reach(job: Object, wanted: str) -> None:
    """Raise JobFailed if the job cannot reach the state, or only if its user does what its message says."""
    has_ended = phase_of(job) in ENDED and wanted != DELETED
    if has_ended or (is_stuck(job) and wanted not in _WITHOUT_THE_USER):
        raise JobFailed(f"{job['metadata']['name']}: {summary(job)}")


def is_reached(job: Object, wanted: str) -> bool:
    """Whether the job is so. The end is a good one."""
    status = job.get("status") or {}
    match wanted:
        case "End":
            return bool(status.get("phase") == Phase.SUCCEEDED)
        case "FirstStep":
            return "firstStepTime" in status
        case "Checkpoint":
            return "checkpoint" in status
        case "Deleted":
            return False
        case "Suspended":
            return _is_true(status, wanted) and not _has_pods(status)
        case _:
            return _is_true(status, wanted)


def _is_true(status: Object, condition: str) -> bool:
    return any(one.get("type") == condition and one.get("status") == "True" for one in status.get("conditions") or ())


def _has_pods(status: Object) -> bool:
    """Whether pods run, or are to run. The condition Suspended is True while pods still save."""
    counted = (status.get("replicaStatuses") or {}).values()
    return any(one.get("active") or one.get("pending") for one in counted)
