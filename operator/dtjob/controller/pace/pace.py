# SPDX-License-Identifier: Apache-2.0
"""Pace: how long events are gathered, and how often progress is written. Both grow with the number of objects."""

from datetime import timedelta

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
