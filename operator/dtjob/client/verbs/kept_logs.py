# SPDX-License-Identifier: Apache-2.0
"""The logs of one attempt: those of pods that are there, and what is kept beside the checkpoints of pods that are gone.

The chief task and the evaluator keep their own logs there. The file of the chief task has the last lines of the other
tasks too. Each line of a file begins with its pod, as in `worker-1.0 | text`.
"""

import io
import tarfile
from collections import deque
from collections.abc import Generator

from dtjob.api.job import Job
from dtjob.api.names import KIND
from dtjob.api.spec.replica_specs import Role
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.verbs.fetch import IDLE, in_pod
from dtjob.client.verbs.helper_pod import directory_of, running, typed
from dtjob.client.verbs.logs import How, Line, logs, name_of_attempt
from dtjob.client.verbs.pods import attempt_of, selector, task_of
from dtjob.objects import topology

FOLDER = "logs"


def logs_of_attempt(cluster: Cluster, job: str, attempt: int, task: str | None, tail: int | None) -> Generator[Line]:
    """The lines of the pods of this attempt, and then those that are kept of each of its pods that is gone.

    Those of data workers are not kept. Raises Refused if none of these is there, and NotDone if the helper pod that
    reads the files does not start.
    """
    stored = cluster.get(KIND, job)
    yield from logs(cluster, job, task, How(attempt=attempt, tail=tail))
    of_type = typed(stored)
    gone = _gone(cluster, of_type, attempt, task)
    if task and (unkept := [one.id for one in gone if one.role is Role.DATA]):
        names = ", ".join(unkept)
        raise Refused(f"{job}: no pod of attempt {attempt} at {names} is there, and logs of data workers are not kept")
    gone = [one for one in gone if one.role is not Role.DATA]
    if not gone:
        return
    top, chief, uid = directory_of(of_type), topology.chief_task(of_type), stored["metadata"]["uid"][:8]
    files = [f"{FOLDER}/{file}.{uid}.log" for file in _files(gone, attempt, chief)]
    archive = io.BytesIO()
    with running(cluster, stored, IDLE) as pod:
        in_pod(cluster, pod)([top, "tar", *files], archive.write)
    archive.seek(0)
    kept = _lines(archive)
    pods = {f"{one.id}.{attempt}": one.id for one in gone}
    if not kept.keys() & pods.keys():
        names = ", ".join(pods.values())
        raise Refused(f"{job}: no log of attempt {attempt} at {names} is kept in {top}, and no pod of it is there")
    for pod, of in pods.items():
        for line in deque(kept.get(pod, ()), maxlen=tail):
            yield Line(name_of_attempt(of, attempt), "", line)


def _gone(cluster: Cluster, job: Job, attempt: int, task: str | None) -> list[topology.Task]:
    """The tasks whose pod of this attempt is not there any more. A task that has only earlier pods never had one."""
    there: dict[str, list[int]] = {}
    for pod in cluster.list("Pod", selector(job.metadata.name)):
        there.setdefault(task_of(pod), []).append(attempt_of(pod))
    return [
        one
        for one in topology.all_tasks(job)
        if task in (None, one.id, one.role.value)
        and attempt not in there.get(one.id, ())
        and (one.id not in there or attempt < max(there[one.id]))
    ]


def _files(gone: list[topology.Task], attempt: int, chief: topology.Task) -> list[str]:
    """The names of the files that may have lines of these pods, without what they end with; `*` is any attempt."""
    own = {f"{one.id}.{attempt}" for one in gone if one == chief or one.role is Role.EVALUATOR}
    return sorted(own | ({f"{chief.id}.*"} if len(own) < len(gone) else set()))


def _lines(archive: io.BytesIO) -> dict[str, list[str]]:
    """The lines that are kept, by pod. They have no times. What a later pod of the chief task has is newer."""
    kept: dict[str, list[str]] = {}
    with tarfile.open(fileobj=archive) as found:
        for entry in sorted(found.getmembers(), key=lambda one: int(one.name.split(".")[1])):
            content, lines = found.extractfile(entry), dict[str, list[str]]()
            for line in content.read().decode(errors="replace").split("\n") if content else ():
                of, _, text = line.partition(" | ")
                lines.setdefault(of, []).append(text)
            kept |= lines
    return kept
