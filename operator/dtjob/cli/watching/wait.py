# SPDX-License-Identifier: Apache-2.0
"""`dtjob wait`: until a job is as one wants it, with an exit code for scripts."""

import re
import time
from collections.abc import Mapping
from typing import Any

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.cli.bad_input import BadInput
from dtjob.cli.watching.words import phase_of
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotFound

END = "End"
REACHED, NEVER, TIMEOUT = 0, 1, 124
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:\d+[smhd])+|\d+")
_STATES = ("Running", "Suspended", "Complete", "Failed")
WANTED = (END, *_STATES, "FirstStep", "Checkpoint", "Deleted")


def seconds_of(text: str, option: str) -> float:
    """The seconds of `90`, `15m` or `1h30m`, which were given with this option. Raises BadInput."""
    if not _DURATION.fullmatch(text):
        raise BadInput(f"{option}: {text} is no duration; write for example 90s, 15m or 1h30m")
    if text.isdecimal():
        return float(text)
    return float(sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)([smhd])", text)))


def check_wanted(word: str) -> str:
    """The word of --for as it is written here, whatever its case. Raises BadInput."""
    for known in WANTED:
        if word.lower() == known.lower() or (word.lower() == "succeeded" and known == "Complete"):
            return known
    raise BadInput(f"--for: {word} is none of {', '.join(WANTED)}")


def wait(cluster: Cluster, name: str, wanted: str, seconds: float | None, uid: str | None = None) -> tuple[int, str]:
    """The exit code and the last known phase. 0: reached. 1: it cannot be reached any more. 124: the time is up.

    `uid`: of the job that is meant, if it is known. Raises NotFound if there is no job to wait for.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    phase = ""
    try:
        for job in changes(cluster, KIND, name, deadline):
            if job is None or job["metadata"]["uid"] != (uid := uid or job["metadata"]["uid"]):
                return (REACHED if wanted == "Deleted" else NEVER), "deleted"
            phase = phase_of(job)
            if is_reached(job, wanted):
                return REACHED, phase
            if phase in ENDED and wanted != "Deleted":
                return NEVER, phase
    except NotFound as error:
        if wanted != "Deleted" or not error.reason:  # without a reason the cluster has no such kind
            raise
        return REACHED, "deleted"
    return TIMEOUT, phase


def is_reached(job: Mapping[str, Any], wanted: str) -> bool:
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


def _is_true(status: Mapping[str, Any], condition: str) -> bool:
    return any(one.get("type") == condition and one.get("status") == "True" for one in status.get("conditions") or ())


def _has_pods(status: Mapping[str, Any]) -> bool:
    """Whether pods run, or are to run. The condition Suspended is True while pods still save."""
    counted = (status.get("replicaStatuses") or {}).values()
    return any(one.get("active") or one.get("pending") for one in counted)
