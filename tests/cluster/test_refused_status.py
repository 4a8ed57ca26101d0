# SPDX-License-Identifier: Apache-2.0
"""Statuses that a real API server refuses. No operator runs here: it would write the same status."""

from typing import Any

import pytest

from dtjob.controller.status_writer import StatusWriter
from dtjob.controller.store import Memory
from dtjob.kube.calls.client import connect
from tests.cluster.support.jobs import job
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


@pytest.mark.parametrize(
    "progress",
    [
        {"step": "many"},
        {"step": 1, "matrix": "m" * 1_700_000},
        {"step": 1, "matrix": "m" * 2_600_000},
        {"step": 1, "matrix": "m" * 4_000_000},
    ],
    ids=["422", "more than etcd takes", "more than the API server sends to etcd", "413"],
)
async def test_a_status_that_the_api_server_refuses_is_written_without_progress(
    cluster: ControlPlane, api: Api, namespace: str, progress: dict[str, Any]
) -> None:
    """Whatever the reason: a definition of another release, or limits of the API server."""
    api.create("dtjobs", namespace, job())
    manifest = api.get("dtjobs", namespace, "digits")
    async with connect(str(cluster.kubeconfig)) as kube:
        status = {"phase": "Running", "ready": "1/3", "progress": progress}
        stored = await StatusWriter(kube).write(Memory(), manifest, status)
        kept = {"phase": "Running", "ready": "1/3"}
        assert stored["status"] == kept
        assert api.get("dtjobs", namespace, "digits")["status"] == kept
    events = [event for event in api.list("events", namespace) if event["reason"] == "ProgressRefused"]
    assert len(events) == 1
