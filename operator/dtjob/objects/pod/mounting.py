# SPDX-License-Identifier: Apache-2.0
"""Whether the access modes of a job's claim let all pods mount it that need it."""

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import MountOn
from dtjob.api.spec.volume_claim import AccessMode
from dtjob.objects import topology

_MODES = "checkpoint.storage.volumeClaimTemplate.spec.accessModes"


def mounting_problem(job: Job) -> str:
    """What keeps pods of this job from mounting its claim, and what to write instead; empty if nothing does."""
    storage = job.spec.checkpoint.storage if job.spec.checkpoint else None
    if storage is None or storage.volume_claim_template is None:
        return ""
    modes = set(storage.volume_claim_template.spec.access_modes)
    everywhere = storage.mount_on is MountOn.ALL
    tasks = len(topology.tasks(job))
    mounting = tasks if everywhere else 1 + (job.spec.replica_specs.evaluator is not None)
    if modes == {AccessMode.ONCE_POD} and mounting > 1:
        other = AccessMode.MANY if everywhere else AccessMode.ONCE
        return f"{_MODES} has only ReadWriteOncePod, and several pods mount the volume: write {other}"
    if everywhere and tasks > 1 and AccessMode.MANY not in modes:
        return (
            f"{_MODES} lacks ReadWriteMany, and mountOn: All mounts the volume in every pod: pods on other nodes than "
            "the first do not start; write ReadWriteMany, or mountOn: Chief"
        )
    return ""
