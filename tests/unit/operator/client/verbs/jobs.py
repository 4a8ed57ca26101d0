# SPDX-License-Identifier: Apache-2.0
"""A job and its pods, as an API server has them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dtjob.client.cluster import Cluster, connect
from tests.unit.operator.client.api_server import ApiServer

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
MINUTE_AGO = "2026-11-23T11:59:00Z"
PODS = "/api/v1/namespaces/team/pods"
JOBS = "/apis/training.dtjob.dev/v1beta1/namespaces/team/distributedtrainingjobs"


def job(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "digits", "namespace": "team", "uid": "u", "creationTimestamp": "2026-11-23T10:00:00Z"},
        "spec": {
            "strategy": "MultiWorkerMirrored",
            "program": {"entrypoint": "a.py"},
            "checkpoint": {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}},
        },
        "status": status,
    }


RUNNING: dict[str, Any] = {
    "phase": "Running",
    "reason": "AllTasksRunning",
    "message": "all tasks run",
    "ready": "3/3",
    "progress": {
        "step": 251,
        "totalSteps": 690,
        "percentage": 36,
        "stepsPerSecond": "9.5",
        "estimatedRemainingSeconds": 46,
        "metrics": [{"name": "loss", "value": "0.5"}],
    },
    "checkpoint": {"step": 200, "time": MINUTE_AGO},
    "evaluation": {"step": 200, "metrics": [{"name": "accuracy", "value": "0.9"}], "best": {"step": 100, "value": "1"}},
    "restarts": {"total": 2, "causes": {"Error": 2}},
    "lastFailure": {
        "task": "worker-1",
        "message": "exit code 1",
        "exitCode": 1,
        "pod": "digits-worker-1-0",
        "node": "node-2",
        "time": MINUTE_AGO,
        "logTail": "Traceback\nValueError: no",
    },
    "conditions": [{"type": "Running", "status": "True"}, {"type": "Complete", "status": "False"}],
}


def pod(task: str, attempt: int = 0, state: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    role, index = task.rsplit("-", 1)
    prefix = "training.dtjob.dev"
    return {
        "metadata": {
            "name": f"digits-{task}-{attempt}",
            "uid": f"{task}-{attempt}",
            "creationTimestamp": MINUTE_AGO,
            "labels": {f"{prefix}/role": role, f"{prefix}/index": index, f"{prefix}/attempt": str(attempt)},
            **metadata,
        },
        "spec": {"nodeName": "node-1"},
        "status": {"containerStatuses": [{"name": "tensorflow", "state": state or {"running": {}}}]},
    }


def stored(phase: str = "Running", storage: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "training.dtjob.dev/v1beta1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "digits", "namespace": "team", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "strategy": "MultiWorkerMirrored",
            "image": "registry.example/a:1",
            "program": {"entrypoint": "a.py", "env": [{"name": "A", "value": "1"}]},
            "replicaSpecs": {"chief": {"resources": {"limits": {"nvidia.com/gpu": 1}}}, "worker": {"replicas": 2}},
            "checkpoint": {
                "storage": storage or {"volume": {"persistentVolumeClaim": {"claimName": "data"}}, "subPath": "x"}
            },
            **spec,
        },
        "status": {"phase": phase},
    }


def event(name: str, time: str, kind: str = "Pod", uid: str = "p", **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name, "uid": uid}
    return {"metadata": {}, "involvedObject": about, "lastTimestamp": time, "reason": "R", "type": "Normal", **more}


def stamped(*lines: tuple[int, str]) -> bytes:
    return b"".join(f"2026-11-23T12:00:{second:02}Z {text}\n".encode() for second, text in lines)


def with_digits(server: ApiServer, tmp_path: Path) -> Cluster:
    """A client of the server, which has the job `digits` and takes each change of it."""
    server.answer(f"GET {JOBS}/digits", stored())
    server.answer(f"PATCH {JOBS}/digits", {})
    return connect(str(server.kubeconfig(tmp_path)))
