# SPDX-License-Identifier: Apache-2.0
"""The logs of one attempt. The chief task keeps its own beside the checkpoints: it stays when its pod is gone."""

import io
import tarfile
from collections import deque
from collections.abc import Generator
from typing import Any

from dtjob.api.names import KIND
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.verbs.fetch import IDLE, in_pod
from dtjob.client.verbs.helper_pod import directory_of, running, typed
from dtjob.client.verbs.logs import How, Line, logs, name_of_attempt
from dtjob.client.verbs.pods import attempt_of, selector, task_of
from dtjob.objects import topology

FOLDER = "logs"


def logs_of_attempt(cluster: Cluster, job: str, attempt: int, task: str | None, tail: int | None) -> Generator[Line]:
    """The lines of the pods of this attempt, and of the chief task's log that is kept, if its pod is gone.

    Raises Refused if the job keeps no such log, and NotDone if the helper pod that reads it does not start.
    """
    stored = cluster.get(KIND, job)
    chief = topology.chief_task(typed(stored)).id
    yield from logs(cluster, job, task, How(attempt=attempt, tail=tail))
    there = {(task_of(pod), attempt_of(pod)) for pod in cluster.list("Pod", selector(job))}
    if task in (None, chief, chief.rpartition("-")[0]) and (chief, attempt) not in there:
        for line in deque(_kept(cluster, stored, chief, attempt), maxlen=tail):
            yield Line(name_of_attempt(chief, attempt), "", line)


def _kept(cluster: Cluster, stored: dict[str, Any], chief: str, attempt: int) -> list[str]:
    """The lines of the log that is kept of this attempt. They have no times."""
    name, top = stored["metadata"]["name"], directory_of(stored)
    file, archive = f"{FOLDER}/attempt-{attempt}.{stored['metadata']['uid'][:8]}.log", io.BytesIO()
    with running(cluster, stored, IDLE) as pod:
        in_pod(cluster, pod)([top, "tar", file], archive.write)
    archive.seek(0)
    with tarfile.open(fileobj=archive) as found:
        entry = found.next()
        content = found.extractfile(entry) if entry is not None else None
        if content is None:
            raise Refused(f"{name}: its pod is gone, and no log of attempt {attempt} at {chief} is kept in {top}")
        return content.read().decode(errors="replace").splitlines()
