# SPDX-License-Identifier: Apache-2.0
"""A real API server that holds a job with many pods, as the scheduler and the kubelets leave them."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dtjob import times
from dtjob.api.job import API_VERSION, KIND, Job
from dtjob.kube.calls.client import Kube, connect
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "default"
AT_ONCE = 50
LARGEST = 1000
"""Pods of one job, where nothing else is asked for."""


@contextmanager
def filled(pods: int, largest: int = LARGEST) -> Iterator[ControlPlane]:
    """A control plane with jobs of up to `largest` running pods each, `pods` together. No operator is there."""
    with ControlPlane(binaries.find()) as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / "crds"))
        Api(cluster.kubeconfig).wait_established()
        asyncio.run(_fill(cluster, pods, largest))
        yield cluster


def manifest(name: str, workers: int) -> Manifest:
    """A job with a chief and workers as people write them: resources, a volume, arguments and environment."""
    resources = {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}
    template = {"spec": {"containers": [{"name": "tensorflow", "resources": resources}]}}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": "vision"}},
        "spec": {
            "strategy": "MultiWorkerMirrored",
            "image": "registry.example.com/vision/trainer:2026-11-21",
            "program": {
                "entrypoint": "train.py",
                "args": ["--epochs=90", "--batch-size=8192", "--data=/data/imagenet"],
                "env": [{"name": f"OPTION_{number}", "value": f"value-{number}"} for number in range(8)],
            },
            "replicaSpecs": {"chief": {"template": template}, "worker": {"replicas": workers, "template": template}},
            "checkpoint": {"storage": {"volume": {"persistentVolumeClaim": {"claimName": name}}}},
        },
    }


async def _fill(cluster: ControlPlane, pods: int, largest: int) -> None:
    async with connect(str(cluster.kubeconfig)) as kube:
        for first in range(0, pods, largest):
            name = f"resnet-{first // largest}"
            cluster.kubectl("apply", "-f", "-", stdin=json.dumps(manifest(name, min(largest, pods - first) - 1)))
            stored = await kube.get(KIND, NAMESPACE, name)
            assert stored is not None
            job = Job.model_validate(stored)
            tasks = iter(topology.tasks(job))

            async def lane(job: Job = job, tasks: Iterator[topology.Task] = tasks) -> None:
                for task in tasks:
                    await _run(kube, pod(job, task, 0))

            await asyncio.gather(*(lane() for _ in range(AT_ONCE)))


async def _run(kube: Kube, wanted: Manifest) -> None:
    """Create the pod, bind it as the scheduler, and write the status that a kubelet writes of a running one."""
    stored = await kube.create(wanted)
    name = stored["metadata"]["name"]
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"
    node = f"gpu-{hash(name) % 500:03}.cluster.example.com"
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    await kube._call("POST", f"{path}/binding", {"metadata": {"name": name}, "target": target})
    stored = await kube._call("GET", path)
    await kube._call("PUT", f"{path}/status", {**stored, "status": running_status(stored)})


def running_status(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What a kubelet says of a pod all of whose containers run."""
    now, uid = times.rfc3339(datetime.now(UTC)), str(stored["metadata"]["uid"])
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    container = stored["spec"]["containers"][0]
    mounts = [{**mount, "recursiveReadOnly": "Disabled"} for mount in container.get("volumeMounts", [])]
    status = {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"registry.example.com/vision/trainer@sha256:{'5f' * 32}",
        "containerID": f"containerd://{uid.replace('-', '') * 2}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
        "resources": container.get("resources", {}),
        "volumeMounts": mounts,
        "user": {"linux": {"uid": 1000, "gid": 1000, "supplementalGroups": [1000]}},
    }
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now} for kind in kinds
        ],
        "hostIP": "10.1.2.3",
        "hostIPs": [{"ip": "10.1.2.3"}],
        "podIP": f"10.244.{int(uid[:2], 16)}.{int(uid[2:4], 16)}",
        "podIPs": [{"ip": f"10.244.{int(uid[:2], 16)}.{int(uid[2:4], 16)}"}],
        "startTime": now,
        "qosClass": stored["status"]["qosClass"],
        "containerStatuses": [status],
    }
