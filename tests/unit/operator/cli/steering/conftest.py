# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an API server with one job."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtjob.client.cluster import Cluster, connect
from tests.unit.operator.client.api_server import ApiServer, serving

JOBS = "/apis/training.dtjob.dev/v1beta1/namespaces/team/distributedtrainingjobs"


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


@pytest.fixture
def server() -> Iterator[ApiServer]:
    yield from serving()


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Cluster:
    server.answer(f"GET {JOBS}/digits", stored())
    server.answer(f"PATCH {JOBS}/digits", {})
    return connect(str(server.kubeconfig(tmp_path)))
