# SPDX-License-Identifier: Apache-2.0
"""Workers: how many the spec asks for and how many train together, as `status.workers` has it.

Everything else goes by the number of the group that is there: `sized` gives the job with that, and with it its tasks,
their cluster spec and their ConfigMap.
"""

from __future__ import annotations

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.status import Status
from dtjob.api.status.workers import Workers
from dtjob.objects import labels


def workers_of(job: Job, written: Workers | None) -> Workers | None:
    """The workers of the job as its spec has it now; None if it has none.

    A changed number is tried at once: what was tried lately for want of room was another's.
    """
    replica = job.spec.replica_specs.worker
    if replica is None:
        return None
    selector = f"{labels.JOB_UID}={job.metadata.uid},{labels.ROLE}={Role.WORKER.value}"
    if written is None:
        return Workers(desired=replica.replicas, replicas=replica.replicas, selector=selector)
    if written.desired == replica.replicas:
        return written if written.selector == selector else written.but(selector=selector)
    if job.spec.elastic_policy is None:  # it is made with the number that its spec says
        return written.but(desired=replica.replicas, replicas=replica.replicas, selector=selector)
    return written.but(desired=replica.replicas, adjusted_time=None, selector=selector)


def changing(job: Job, workers: Workers | None) -> Workers | None:
    """The workers of a job whose number of them may change, or is changing; None of any other."""
    replica = job.spec.replica_specs.worker
    if workers is None or replica is None:
        return None
    under_way = workers.resizing is not None or workers.replicas != workers.desired
    return workers if job.spec.elastic_policy is not None or under_way else None


def sized(job: Job, workers: Workers | None) -> Job:
    """The job with as many workers as its group has."""
    replica = job.spec.replica_specs.worker
    if workers is None or replica is None or replica.replicas == workers.replicas:
        return job
    replicas = job.spec.replica_specs.model_copy(
        update={"worker": replica.model_copy(update={"replicas": workers.replicas})}
    )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"replica_specs": replicas})})


def as_it_is(job: Job) -> Job:
    """The job with as many workers as its status says that its group has, for whoever knows no situation."""
    if "workers" not in job.status:
        return job
    return sized(job, workers_of(job, Status.read({"workers": job.status["workers"]}).workers))
