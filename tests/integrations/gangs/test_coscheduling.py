# SPDX-License-Identifier: Apache-2.0
"""Gangs by the Coscheduling plugin of kubernetes-sigs/scheduler-plugins: its real scheduler on a real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.support import gangs
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.integrations.gangs.conftest import control_plane
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api

PROVIDER = "Coscheduling"
NAME = "scheduler-plugins-scheduler"


def command(cluster: ControlPlane) -> list[list[str]]:
    """As docs/jobs/gangs.md has it. A default scheduler's profile is beside it, for the evaluator."""
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}], "disabled": []}}
    queue = {"queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}}
    gang = {"schedulerName": NAME, "plugins": {**plugins, **queue}}
    plain = {**gang, "schedulerName": "default-scheduler"}  # all profiles of a scheduler sort its queue alike
    configuration: Path = cluster.directory / "scheduler.yaml"
    configuration.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(cluster.kubeconfig)},
                "leaderElection": {"leaderElect": False},
                "profiles": [gang, plain],
            }
        )
    )
    # A gang that was let go while the last nodes came free is told of no other change: it waits for this, or 5 minutes.
    again = "--pod-max-in-unschedulable-pods-duration=10s"
    return [[str(cluster.programs["scheduler-with-plugins"]), f"--config={configuration}", "--secure-port=0", again]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with control_plane(("scheduler-with-plugins",), lambda: [gangs.COSCHEDULING], command) as running:
        yield running


def test_a_gang_of_four_waits_for_room_for_four(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    gangs.four_wait_for_room_for_four(api, namespace, kubelet, PROVIDER)


def test_two_jobs_never_hold_half_each(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    gangs.two_jobs_never_hold_half_each(api, namespace, kubelet, PROVIDER)
