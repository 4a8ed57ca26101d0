# SPDX-License-Identifier: Apache-2.0
"""What is true of a pod whatever becomes of its labels, and of the checkpoints that were really written."""

from dataclasses import dataclass
from typing import Any

from dtjob.api.job import Job
from dtjob.api.status.status import Status
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.placeholder import is_placeholder
from dtjob.plan.seen.children import facts_of
from dtjob.plan.seen.situation import sized, workers_of


@dataclass(frozen=True)
class Facts:
    """What a pod was made as."""

    job_uid: str
    job_name: str
    task: str
    attempt: int
    claim: str | None
    """The claim that holds the checkpoints of its job, where it mounts one."""
    supervised: bool
    group: str = ""
    """The ConfigMap with its cluster spec."""
    sub_path: str = ""
    """Where in the claim; empty for its root."""

    @classmethod
    def of(cls, pod: Manifest) -> "Facts":
        """The facts of a pod that the operator makes just now."""
        volumes = {one["name"]: one for one in pod["spec"].get("volumes") or ()}
        claim = volumes.get("checkpoints", {}).get("persistentVolumeClaim", {}).get("claimName")
        names = {one["name"] for one in pod["spec"]["containers"][0].get("env") or ()}
        uid, found = labels.controller_uid(pod), labels.of(pod)
        assert uid is not None
        supervised = "DTJOB_ATTEMPT" in names
        cluster = volumes.get("dtjob-cluster", {}).get("configMap", {}).get("name", "")
        for one in pod["spec"]["containers"][0].get("env") or ():
            cluster = one.get("valueFrom", {}).get("configMapKeyRef", {}).get("name", cluster)
        attempt = -1 if is_placeholder(pod["metadata"]["name"]) else topology.attempt_of(pod)
        mounts = {one["name"]: one for one in pod["spec"]["containers"][0].get("volumeMounts") or ()}
        below = mounts.get("checkpoints", {}).get("subPath", "")
        return cls(uid, found[labels.JOB_NAME], labels.task_id(pod), attempt, claim, supervised, cluster, below)

    @property
    def keeps_a_place(self) -> bool:
        """Whether it is a placeholder."""
        return self.attempt < 0

    @property
    def directory(self) -> str:
        """What its checkpoints are kept in: a directory of the claim, or the pod alone."""
        return f"{self.claim}:{self.sub_path}" if self.claim else f"{self.job_uid}/{self.task}/{self.attempt}"


class AllFacts(dict[str, Facts]):
    """The facts of every pod that the operator ever made, by uid. None is taken away."""

    def __init__(self) -> None:
        super().__init__()
        self._by_job: dict[str, dict[str, str]] = {}

    def add(self, uid: str, pod: str, facts: Facts) -> None:
        """Facts of one more pod, given its uid and its name."""
        self[uid] = facts
        self._by_job.setdefault(facts.job_name, {})[uid] = pod

    def names(self, job_name: str) -> dict[str, str]:
        """Names of all pods that were made for jobs of this name, by uid."""
        return self._by_job.get(job_name, {})


def directory_named(job: Manifest) -> tuple[str | None, str]:
    """The claim for its checkpoints that a manifest names, None if it names none, and the directory in there."""
    storage = job["spec"].get("checkpoint", {}).get("storage", {})
    made = f"{job['metadata']['name']}-checkpoints" if "volumeClaimTemplate" in storage else None
    claim = storage.get("volume", {}).get("persistentVolumeClaim", {}).get("claimName", made)
    return claim, storage.get("subPath", "")


def attempt_of(status: dict[str, Any], task: str) -> int:
    """The attempt at which a job's status has the task. It is asked for so often that nothing else is read of it."""
    return Status.read({"internal": status.get("internal")}).internal.attempts.of(task)


def sized_job(job: Job, status: dict[str, Any] | None = None) -> Job:
    """The job with as many workers as this status, or its own, says that its group has."""
    return sized(job, workers_of(job, Status.read(job.status if status is None else status).workers))


def is_suspended(status: dict[str, Any]) -> bool:
    """Whether the status says that the job is suspended, whatever a newer operator calls its phase."""
    return any((one["type"], one["status"]) == ("Suspended", "True") for one in status.get("conditions") or ())


def told_to_end(pod: Manifest) -> bool:
    """Whether somebody has deleted or evicted the pod."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return "deletionTimestamp" in pod["metadata"] or any(one["type"] == "DisruptionTarget" for one in conditions)


def has_finished(pod: Manifest, facts: Facts) -> bool:
    """Whether its task has done its part: a supervisor's 0 says so, another image's only where nobody told it to end,
    since many programs save and exit 0 then."""
    end = facts_of(pod).end
    return end is not None and end.get("exitCode") == 0 and (facts.supervised or not told_to_end(pod))
