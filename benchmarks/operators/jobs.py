# SPDX-License-Identifier: Apache-2.0
"""The same job as dtjob's and as Kubeflow's: manifests, and what their statuses say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.objects import labels, shared, topology
from dtjob.objects.pod.pod import pod
from tools.cluster.rest import Object

NAMESPACE = "bench"
IMAGE = "registry.example.com/trainer:1"
"""No supervisor of dtjob's is in it, as in the images that TFJob runs: TF_CONFIG is all that it is given."""
RUNNING, SUCCEEDED = "Running", "Succeeded"
TFJOB_LABELS = ("job-name", "replica-type", "replica-index")


@dataclass(frozen=True)
class Shape:
    """How many tasks of each role a job has: a chief, and these."""

    workers: int
    ps: int = 0

    @property
    def pods(self) -> int:
        """Of one job."""
        return 1 + self.workers + self.ps


def dtjob(name: str, shape: Shape) -> Object:
    """The job for dtjob."""
    replicas: Object = {"chief": {}}
    if shape.workers:
        replicas["worker"] = {"replicas": shape.workers}
    if shape.ps:
        replicas["ps"] = {"replicas": shape.ps}
    strategy = "ParameterServer" if shape.ps else "MultiWorkerMirrored"
    spec = {"strategy": strategy, "image": IMAGE, "replicaSpecs": replicas}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def tfjob(name: str, shape: Shape) -> Object:
    """The job for TFJob. Failed pods are replaced, and those that still run at the end removed, as dtjob does both."""
    template = {"spec": {"containers": [{"name": "tensorflow", "image": IMAGE}]}}
    counts = {"Chief": 1, "Worker": shape.workers, "PS": shape.ps}
    replicas = {
        role: {"replicas": count, "restartPolicy": "ExitCode", "template": template}
        for role, count in counts.items()
        if count
    }
    spec = {"runPolicy": {"cleanPodPolicy": "Running"}, "tfReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}


def phase_of_dtjob(job: Mapping[str, Any]) -> str:
    """Running, Succeeded, or another word of dtjob's."""
    return str((job.get("status") or {}).get("phase") or "")


def phase_of_tfjob(job: Mapping[str, Any]) -> str:
    """Running or Succeeded where a condition says so."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    true = {one["type"] for one in conditions if one["status"] == "True"}
    return next((phase for phase in (SUCCEEDED, "Failed", RUNNING) if phase in true), "")


Task = tuple[str, str, str]
"""Job, role in small letters, and index."""


def task_of_dtjob(found: Mapping[str, str]) -> Task:
    """Whose pod it is, by its labels."""
    return found.get(labels.JOB_NAME, ""), found.get(labels.ROLE, ""), found.get(labels.INDEX, "")


def task_of_tfjob(found: Mapping[str, str]) -> Task:
    """Whose pod it is, by its labels."""
    job, role, index = (found.get(f"training.kubeflow.org/{name}", "") for name in TFJOB_LABELS)
    return job, role, index


def objects_of(stored: Object) -> list[Object]:
    """All that dtjob makes for a job as the API server has it: what the bare loop posts."""
    job = Job.model_validate(stored)
    return [*shared.shared_objects(job), *(pod(job, task, 0) for task in topology.tasks(job))]


def ended(pod: Mapping[str, Any], exit_code: int) -> Object:
    """A patch of the pod's status, as a kubelet writes it when the training container has ended."""
    container = dict((pod.get("status") or {}).get("containerStatuses", [{"name": "tensorflow", "image": IMAGE}])[0])
    at = "2026-01-01T00:00:00Z"
    reason = "Completed" if exit_code == 0 else "Error"
    terminated = {"exitCode": exit_code, "reason": reason, "startedAt": at, "finishedAt": at}
    container |= {"ready": False, "started": False, "state": {"terminated": terminated}}
    phase = SUCCEEDED if exit_code == 0 else "Failed"
    return {"status": {"phase": phase, "containerStatuses": [container]}}
