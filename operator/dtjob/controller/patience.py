"""How long a status that may wait waits until it is written (`plan/urgency.py` says which may)."""

from __future__ import annotations

from dtjob.controller.cluster import JobKey

SHORTEST_SECONDS = 1.0
"""Within this the pods of a small job start, or end, one after another."""
LONGEST_SECONDS = 5.0
"""While other jobs are due: what they wait for comes first."""


class Patience:
    """Remembers since when each job's status waits. `now` is in seconds of one clock throughout. With `longest` 0
    none waits."""

    def __init__(self, longest: float = LONGEST_SECONDS) -> None:
        self._longest = longest
        self._since: dict[JobKey, float] = {}

    def wait(self, key: JobKey, now: float, busy: bool) -> float:
        """How many seconds the status of this job waits yet, 0 where it is to be written now; `busy`: whether other
        jobs are due."""
        waited = now - self._since.setdefault(key, now)
        if waited >= (self._longest if busy else min(SHORTEST_SECONDS, self._longest)):
            return 0.0
        return max(SHORTEST_SECONDS - waited, SHORTEST_SECONDS / 2)

    def forget(self, key: JobKey) -> None:
        """Note that the status of this job waits no more."""
        self._since.pop(key, None)
