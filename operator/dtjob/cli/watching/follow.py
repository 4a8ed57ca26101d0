# SPDX-License-Identifier: Apache-2.0
"""Follows a job to its end: its logs, and each change of its phase."""

import sys

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.cli.watching.logs import ALL, How, Tails, standard_output
from dtjob.cli.watching.words import is_stuck, phase_of, summary
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster

SUCCEEDED, FAILED = 0, 1


def follow_job(cluster: Cluster, name: str, task: str | None = None, how: How = ALL) -> int:
    """Print logs to standard output and phases to standard error until the job has ended.

    Returns 0 if it has succeeded and 1 if it has failed, was deleted, or waits for its user.
    """
    tails, said = Tails(cluster, name, standard_output(), task, how), ""
    tails.start()
    for job in changes(cluster, KIND, name):
        if job is None:
            print(f"{name}: it was deleted", file=sys.stderr)
            return FAILED
        line = summary(job)
        if line != said:
            said = line
            print(f"{name}: {line}", file=sys.stderr)
        if is_stuck(job):
            return FAILED
        if phase_of(job) in ENDED:
            tails.finish()
            return SUCCEEDED if phase_of(job) == Phase.SUCCEEDED else FAILED
    return FAILED
