# SPDX-License-Identifier: Apache-2.0
"""Pace: how long events are gathered, how often progress is written, and how long a status waits that is not urgent."""

import math
from datetime import timedelta

from dtjob.controller.cluster import JobKey

SHORTEST_GATHER_SECONDS = 0.1
LONGEST_GATHER_SECONDS = 0.5
GATHER_SECONDS_A_CHILD = 0.001
"""After a look at a job, events of its pods are gathered: 0.1 s for up to 100 pods, 0.5 s from 500 on. The pods of a
small job are scheduled, and run, within such a time: one look and one status write tell of all of them."""

SETTLE_SECONDS = 0.1
"""An event that is not urgent is looked at so long after it came: those that come with it belong to it. All tasks of a
job end at about the same time, and one look and one status write tell of it."""

SHORTEST_PROGRESS = timedelta(seconds=10)
PROGRESS_WRITES_A_SECOND = 20
"""Of all jobs together: as much as the API server hardly notices. 200 jobs are written every 10 s, 1,000 every 50 s."""


def gather_seconds(children: int) -> float:
    """How long after a look at a job of so many children events of its pods do not make it due again."""
    return min(max(SHORTEST_GATHER_SECONDS, children * GATHER_SECONDS_A_CHILD), LONGEST_GATHER_SECONDS)


def progress_every(jobs: int) -> timedelta:
    """How often the progress of each of so many jobs is written where nothing else of it changes."""
    return max(SHORTEST_PROGRESS, timedelta(seconds=jobs / PROGRESS_WRITES_A_SECOND))


SHORTEST_STATUS_SECONDS = 1.0
"""Within this the pods of a small job start, or end, one after another."""
LONGEST_STATUS_SECONDS, LONGEST_FIRST_SECONDS = 5.0, 10.0
"""While there is much to do: what other jobs wait for comes first. The second for the first status of a job whose pods
are there: by then most of them run, and it says so at once."""
FIRST_SECONDS_A_JOB, MOST_FIRST_SECONDS = 0.1, 30.0
"""How long a first status waits for each job that has none yet, and at most. The pods of many new jobs take longer to
run, even if the operator has little to do. If their statuses were written sooner, each would be written twice, and all
jobs would run later. On two cores 500 jobs took 0.06 to 0.08 s each."""
MUCH = 3
"""Jobs that are due or looked at, or wait for their first status. Of a thousand jobs that run well, this is seldom more
than one at a time."""


class StatusDelay:
    """Remembers since when each job's status waits. `now` is in seconds of one clock throughout. With `longest` 0
    none waits."""

    def __init__(self, longest: float = math.inf) -> None:
        self._longest = longest
        self._since: dict[JobKey, float] = {}
        self._first: dict[JobKey, int] = {}
        """Jobs that wait for their first status, each with the most that have waited together with it. So the last job
        of a crowd is not served sooner because the others were."""

    def wait(self, key: JobKey, now: float, jobs: int, first: bool = False) -> float:
        """How many seconds until the status of this job is looked at again, 0 if it is to be written now. `jobs`: how
        many are due or looked at. `first`: whether it has none yet, for which its user looks."""
        beside = self._beside(key, first)
        waited, much = now - self._since.setdefault(key, now), jobs > MUCH
        most = LONGEST_STATUS_SECONDS if much else SHORTEST_STATUS_SECONDS
        if first:
            crowd = FIRST_SECONDS_A_JOB * beside if beside > MUCH else 0.0
            most = min(max(LONGEST_FIRST_SECONDS if much else 0.0, crowd), MOST_FIRST_SECONDS)
        left = min(most, self._longest) - waited
        return max(left, SHORTEST_STATUS_SECONDS / 2) if left > 0 else 0.0

    def forget(self, key: JobKey) -> None:
        """Note that the status of this job waits no more."""
        self._since.pop(key, None)
        self._first.pop(key, None)

    def _beside(self, key: JobKey, first: bool) -> int:
        """How many jobs have waited for their first status together with this one, itself included."""
        if not first:
            self._first.pop(key, None)
            return 0
        self._first.setdefault(key, 0)
        self._first[key] = max(self._first[key], len(self._first))
        return self._first[key]
