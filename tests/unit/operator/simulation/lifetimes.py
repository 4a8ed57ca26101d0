# SPDX-License-Identifier: Apache-2.0
"""What must hold of the time that a job has, held against how long it was active and how long ago it ended."""

from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.phase import ENDED
from dtjob.api.status.status import Status
from dtjob.objects.manifest import Manifest
from tests.unit.operator.simulation.facts import is_suspended

ROUNDING = timedelta(seconds=2)
LATE = timedelta(seconds=60)
"""So much later at most a deadline ends a job that has anything written about it: calls may fail meanwhile."""


class Lifetimes:
    """Raises AssertionError at the call that breaks a rule."""

    def __init__(self) -> None:
        self._active: dict[str, timedelta] = {}
        """How long each job was active until it was looked at last, by uid."""
        self._seen: dict[str, datetime] = {}
        self._changed: set[str] = set()
        self._forgotten: set[str] = set()

    def begin_anew(self, uid: str) -> None:
        """Somebody changes the job's deadlines: the operator has yet to hear of that."""
        self._changed.add(uid)

    def is_forged(self, uid: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Somebody changes the job's status. If that takes away since when it was active or suspended, the next status
        that says something of it may say anything up to the job's age. From then on the time adds up again."""
        if (old.get("active"), is_suspended(old)) != (new.get("active"), is_suspended(new)):
            self._forgotten.add(uid)

    def check_status(self, job: Manifest, new: dict[str, Any], now: datetime) -> None:
        """Before a status is stored: the job's deadlines end it when they are over, and not before."""
        uid, old = job["metadata"]["uid"], job.get("status") or {}
        policy, lasted = job["spec"], self._lasted(uid, old, now)
        if uid in self._forgotten:
            lasted = self._begun_anew(job, new, now)
        deadline = policy.get("activeDeadlineSeconds")
        if new.get("reason") == "DeadlineExceeded" and old.get("phase") not in ENDED:
            assert deadline is not None, "no deadline was asked for"
            assert lasted >= timedelta(seconds=deadline) - ROUNDING, f"cut off after {lasted} of {deadline} s"
        elif uid in self._changed:
            self._changed.discard(uid)
        elif deadline is not None and new.get("phase") not in ENDED and not is_suspended(new):
            assert lasted <= timedelta(seconds=deadline) + LATE, f"active for {lasted} of {deadline} s"
        if new.get("reason") == "StartDeadlineExceeded" and old.get("phase") not in ENDED:
            assert "startDeadlineSeconds" in policy, "no deadline was asked for"
            assert "allRanTime" not in (old.get("active") or {}), "it had started"
        self._active[uid], self._seen[uid] = lasted, now

    def check_deletion(self, job: Manifest, now: datetime) -> None:
        """An ended job goes when it has been there for as long as it says."""
        status, spec = job["status"], job["spec"]
        seconds = spec.get("ttlSecondsAfterFinished")
        assert seconds is not None, "nobody asked for that"
        since = now - times.parse(status["completionTime"])
        assert since >= timedelta(seconds=seconds) - ROUNDING, f"deleted after {since} of {seconds} s"

    def _begun_anew(self, job: Manifest, new: dict[str, Any], now: datetime) -> timedelta:
        """How long a job was active whose earlier time is forgotten, as its status says."""
        active = Status.read(new).active
        if active is None:
            return timedelta(0)
        self._forgotten.discard(job["metadata"]["uid"])
        lasted, age = active.lasted(now), now - times.parse(job["metadata"]["creationTimestamp"])
        assert lasted <= age + ROUNDING, f"active for {lasted}, and there for {age}"
        return lasted

    def _lasted(self, uid: str, old: dict[str, Any], now: datetime) -> timedelta:
        lasted = self._active.get(uid, timedelta(0))
        if is_suspended(old) or old.get("phase") in ENDED:
            return lasted
        if uid not in self._seen:  # an operator before this world's may have begun it
            return now - times.parse(old["startTime"]) if "startTime" in old else lasted
        return lasted + max(now - self._seen[uid], timedelta(0))
