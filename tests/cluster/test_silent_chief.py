# SPDX-License-Identifier: Apache-2.0
"""A chief whose status cannot be read: the job goes on, and says so."""

import asyncio
import socket
from datetime import timedelta
from typing import Any

import pytest

from dtjob.plan.diagnosis import reachability
from tests.cluster.support.in_process import operator_here
from tests.cluster.support.jobs import job
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


def unreachable(found: Any) -> bool:
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("StatusReachable", "False") for one in conditions)


async def test_a_chief_that_accepts_and_never_answers_is_a_condition(
    cluster: ControlPlane, api: Api, namespace: str, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachability, "SAID_AFTER", timedelta(seconds=2))

    def life() -> Any:
        port = hung.getsockname()[1]
        api.create("dtjobs", namespace, job(strategy="Mirrored", network={"statusPort": port}))
        kubelet.run("digits-chief-0-0", address="127.0.0.1")
        return api.wait_for("dtjobs", namespace, "digits", unreachable)

    with socket.create_server(("127.0.0.1", 0)) as hung:
        async with operator_here(cluster, namespace, report_seconds=1):
            found = await asyncio.to_thread(life)
    assert found["status"]["phase"] == "Running"
    assert found["status"].get("restarts", {}).get("total", 0) == 0
