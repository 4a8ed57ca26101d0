# SPDX-License-Identifier: Apache-2.0
"""`dtjob exec` chooses the pod of a task."""

from typing import Any

import pytest

from dtjob.cli.exec import run_in_task
from dtjob.client import exec as executing
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import pod

PODS = "/api/v1/namespaces/team/pods"
ENDED = {"terminated": {"exitCode": 0}}


@pytest.fixture
def asked(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The pods and containers in which commands run. The newest pods of chief and worker-1 run."""
    pods = [pod("chief-0", state=ENDED), pod("chief-0", 1), pod("worker-0", state=ENDED), pod("worker-1")]
    server.answer(f"GET {PODS}", {"items": pods, "metadata": {}})
    found: list[tuple[Any, ...]] = []

    def run(_: Cluster, name: str, container: str, command: Any, **how: bool) -> int:
        found.append((name, container, list(command), how))
        return 3

    monkeypatch.setattr(executing, "run", run)
    return found


@pytest.mark.parametrize(
    ("task", "name"),
    [(None, "digits-chief-0-1"), ("worker", "digits-worker-1-0"), ("worker-1", "digits-worker-1-0")],
)
def test_the_newest_running_pod_of_the_task_runs_the_command(
    cluster: Cluster, asked: list[tuple[Any, ...]], task: str | None, name: str
) -> None:
    assert run_in_task(cluster, "digits", task, None, ["nvidia-smi"], stdin=False, tty=False) == 3
    assert asked == [(name, "tensorflow", ["nvidia-smi"], {"stdin": False, "tty": False})]


def test_a_task_that_does_not_run_is_named(cluster: Cluster, asked: list[tuple[Any, ...]], server: ApiServer) -> None:
    said = "digits: no pod of worker-0 runs; dtjob status digits says why"
    with pytest.raises(Refused, match=said):
        run_in_task(cluster, "digits", "worker-0", None, ["ls"], stdin=False, tty=False)
    server.answer(f"GET {PODS}", {"items": [pod("worker-0", state=ENDED), pod("worker-1")], "metadata": {}})
    with pytest.raises(Refused, match="the pod of its first task does not run"):
        run_in_task(cluster, "digits", None, None, ["ls"], stdin=False, tty=False)
    assert asked == []
