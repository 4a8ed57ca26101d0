# SPDX-License-Identifier: Apache-2.0
"""Whether checkpoints outlive the pod that writes them, and all pods that need it can mount their claim."""

from dataclasses import dataclass

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import MountOn
from dtjob.api.spec.program import Integration
from dtjob.api.spec.volume_claim import AccessMode
from dtjob.objects import topology
from dtjob.objects.defaults import Defaults

ENDS_WITH_POD = ("emptyDir", "ephemeral")
"""Volume sources that Kubernetes removes with the pod; the claim of an ephemeral one too."""
ON_ONE_NODE = "hostPath"

_VOLUME = "checkpoint.storage.volume"
_ADVICE = "use checkpoint.storage.volumeClaimTemplate, or a volume with a persistentVolumeClaim"


@dataclass(frozen=True)
class Keeping:
    """`kept` None: that depends on the node. `reason` is one word for programs, `message` is for people: what will
    happen, and what to write instead."""

    kept: bool | None
    reason: str
    message: str = ""


def nothing_saved(job: Job) -> str:
    """The warning about a program that dtjob trains and does not save; empty for any other job."""
    spec = job.spec
    if spec.checkpoint is not None or spec.program is None or spec.program.integration is Integration.NONE:
        return ""
    return "no checkpoint: every restart begins at step 0; add checkpoint.storage"


def keeping(job: Job, defaults: Defaults) -> Keeping | None:
    """What becomes of the checkpoints when the pod goes that writes them; None if none are written."""
    checkpoint = job.spec.checkpoint
    if checkpoint is None:
        return None
    if checkpoint.storage.uri is not None:
        return Keeping(True, "Bucket")
    if defaults.directories_stay:
        return Keeping(True, "LocalDirectory")
    source = next(iter(checkpoint.storage.volume or {}), "")  # the definition takes one, which can be written to
    if source in ENDS_WITH_POD:
        evaluated = job.spec.replica_specs.evaluator is not None
        evaluator = ", and the evaluator, in a pod of its own, sees none of its checkpoints" if evaluated else ""
        message = (
            f"{_VOLUME} is an {source} volume, and ends with the chief's pod: when that is lost, training begins again "
            f"at step 0{evaluator}; {_ADVICE}"
        )
        return Keeping(False, "EndsWithPod", message)
    if source == ON_ONE_NODE:
        message = (
            f"{_VOLUME} is a {source}, which stays on its node: a chief that starts on another node finds none of its "
            f"checkpoints there, unless every node has the same files at this path; {_ADVICE}"
        )
        return Keeping(None, "OnOneNode", message)
    return Keeping(True, "Volume")


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
