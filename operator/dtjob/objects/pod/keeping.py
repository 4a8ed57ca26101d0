# SPDX-License-Identifier: Apache-2.0
"""Whether a job's checkpoints outlive the pod that writes them, as far as its manifest tells."""

from dataclasses import dataclass
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.volume_sources import READ_ONLY_SOURCES
from dtjob.objects.defaults import Defaults

ENDS_WITH_POD = ("emptyDir", "ephemeral")
"""Volume sources that Kubernetes removes with the pod; the claim of an ephemeral one too."""
ON_ONE_NODE = "hostPath"

_ADVICE = "use checkpoint.storage.volume with a persistentVolumeClaim"


@dataclass(frozen=True)
class Keeping:
    """`kept` None: that depends on the node. `reason` is one word for programs, `message` is for people: what will
    happen, and what to write instead."""

    kept: bool | None
    reason: str
    message: str = ""


def keeping(job: Job, defaults: Defaults) -> Keeping | None:
    """What becomes of the checkpoints when the pod goes that writes them; None if none are written."""
    checkpoint = job.spec.checkpoint
    if checkpoint is None:
        return None
    if checkpoint.storage.uri is not None:
        return Keeping(True, "Bucket")
    if defaults.directories_stay:
        return Keeping(True, "LocalDirectory")
    return _of_source(job, checkpoint.storage.volume or {}, "checkpoint.storage.volume")


def _of_source(job: Job, volume: dict[str, Any], what: str) -> Keeping:
    source, settings = next(((name, value) for name, value in volume.items() if name != "name"), ("", {}))
    settings = settings if isinstance(settings, dict) else {}  # else the API server refuses the pod, and says why
    if source in ENDS_WITH_POD:
        return _ends_with_pod(job, f"{what} is an {source} volume")
    if source in READ_ONLY_SOURCES or settings.get("readOnly") is True:
        message = f"{what} ({source}) is read-only, and checkpoints cannot be written there; {_ADVICE}"
        return Keeping(False, "ReadOnly", message)
    if source == ON_ONE_NODE:
        message = (
            f"{what} is a {source}, which stays on its node: a chief that starts on another node finds none of its "
            f"checkpoints there, unless every node has the same files at this path; {_ADVICE}"
        )
        return Keeping(None, "OnOneNode", message)
    return Keeping(True, "Volume")


def _ends_with_pod(job: Job, why: str) -> Keeping:
    evaluated = job.spec.replica_specs.evaluator is not None
    unseen = ", and the evaluator, in a pod of its own, sees none of its checkpoints" if evaluated else ""
    lost = f"when that is lost, training begins again at step 0{unseen}"
    message = f"{why}, and ends with the chief's pod: {lost}; {_ADVICE}"
    return Keeping(False, "EndsWithPod", message)
