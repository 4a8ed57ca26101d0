# SPDX-License-Identifier: Apache-2.0
"""What a pod needs for GPUs and TPUs, beyond what the user's template says."""

from collections.abc import Mapping
from math import prod
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.pod_template import SHARED_MEMORY_VOLUME
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import TPU_RESOURCE, Strategy
from dtjob.objects import topology
from dtjob.objects.topology import Task

GPU_RESOURCE = "nvidia.com/gpu"
TPU_LABELS = {"accelerator": "cloud.google.com/gke-tpu-accelerator", "topology": "cloud.google.com/gke-tpu-topology"}
TPU_TOLERATION = {"key": TPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}
GPU_TOLERATION = {"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}
"""Of the taint by which nodes with GPUs keep other pods off, where no admission plugin adds it
(ExtendedResourceToleration)."""
SHARED_MEMORY = "/dev/shm"
SHARED_MEMORY_PER_GPU = 1
"""GiB: NCCL's buffers between the GPUs of a pod do not fit in a container's default of 64 MiB."""


def equip(job: Job, task: Task, spec: dict[str, Any]) -> dict[str, Any]:
    """The pod's spec, with what its accelerators need. The training container is the first."""
    spec, (training, *others) = dict(spec), spec["containers"]
    training = dict(training)
    if job.spec.strategy is Strategy.TPU and task.role is Role.CHIEF:
        _add_tpu(job, spec, training)
    if gpus := gpus_of(training):
        spec["tolerations"] = [*(spec.get("tolerations") or []), GPU_TOLERATION]
        _add_shared_memory(spec, training, gpus * SHARED_MEMORY_PER_GPU)
        # The trainer hides GPUs from tasks that hold variables or hand out steps.
        coordinates = job.spec.strategy is Strategy.PARAMETER_SERVER and task.role is Role.CHIEF
        if job.spec.program and not (coordinates or task.role is Role.PS):
            training["env"] = [{"name": "DTJOB_GPUS", "value": str(gpus)}, *training["env"]]
    elif task.role is Role.EVALUATOR and _gpus_of_role(job, topology.chief_task(job).role):
        # Many images of NVIDIA's show a container all GPUs of its node where it asks for none: the chief's among them.
        training["env"] = [{"name": "CUDA_VISIBLE_DEVICES", "value": "-1"}, *training["env"]]
    spec["containers"] = [training, *others]
    return spec


def _add_tpu(job: Job, spec: dict[str, Any], training: dict[str, Any]) -> None:
    tpu = job.spec.strategy_options.tpu if job.spec.strategy_options else None
    if tpu is None or tpu.topology is None:
        return
    wanted = {TPU_LABELS["accelerator"]: tpu.accelerator, TPU_LABELS["topology"]: tpu.topology}
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **wanted}
    spec["tolerations"] = [*(spec.get("tolerations") or []), TPU_TOLERATION]
    chips = {TPU_RESOURCE: prod(map(int, tpu.topology.split("x")))}
    resources = training.get("resources") or {}
    training["resources"] = {
        **resources,
        **{kind: {**(resources.get(kind) or {}), **chips} for kind in ("requests", "limits")},
    }


def gpus_of(training: Mapping[str, Any]) -> int:
    """How many GPUs the container asks for; Kubernetes takes them as a limit, in whole numbers."""
    text = str(((training.get("resources") or {}).get("limits") or {}).get(GPU_RESOURCE, 0))
    return int(text) if text.isdecimal() else 0


def unequal_gpus(job: Job) -> str:
    """Why the GPUs of this job do not fit MultiWorkerMirrored; empty if they fit.

    TensorFlow makes a replica for each GPU of a task, and assumes that each task has the same number (`TODO` in
    `CollectiveAllReduceExtended._initialize_multi_worker`).
    """
    if job.spec.strategy is not Strategy.MULTI_WORKER_MIRRORED or job.spec.replica_specs.get(Role.CHIEF) is None:
        return ""
    chief, worker = (_gpus_of_role(job, role) for role in (Role.CHIEF, Role.WORKER))
    if chief == worker or job.spec.replica_specs.get(Role.WORKER) is None:
        return ""
    return (
        f"chief asks for {chief} {GPU_RESOURCE} and worker for {worker}, but under MultiWorkerMirrored the chief "
        "trains too: give both the same number, or remove chief"
    )


def _gpus_of_role(job: Job, role: Role) -> int:
    replica = job.spec.replica_specs.get(role)
    resources = replica and (replica.resources or replica.training.resources)
    return gpus_of({"resources": resources.model_dump(by_alias=True)}) if resources else 0


def _add_shared_memory(spec: dict[str, Any], training: dict[str, Any], gibibytes: int) -> None:
    mounts = training.get("volumeMounts") or []
    if any(mount.get("mountPath", "").rstrip("/") == SHARED_MEMORY for mount in mounts):
        return
    memory = {"medium": "Memory", "sizeLimit": f"{gibibytes}Gi"}
    spec["volumes"] = [*(spec.get("volumes") or []), {"name": SHARED_MEMORY_VOLUME, "emptyDir": memory}]
    training["volumeMounts"] = [*mounts, {"name": SHARED_MEMORY_VOLUME, "mountPath": SHARED_MEMORY}]
