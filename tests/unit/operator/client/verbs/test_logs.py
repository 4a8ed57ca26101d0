# SPDX-License-Identifier: Apache-2.0
"""Logs so far: of all tasks and attempts, merged by time."""

from typing import Any

import pytest

from dtjob.client.cluster import Cluster
from dtjob.client.verbs import logs as reading
from dtjob.client.verbs.logs import How
from dtjob.client.verbs.logs import logs as lines_of
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import PODS, stamped


def found(cluster: Cluster, task: str | None = None, **how: Any) -> list[str]:
    return [f"{line.task} | {line.text}" for line in lines_of(cluster, "digits", task, How(**how))]


@pytest.mark.parametrize("piece", [7, reading._PIECE], ids=["in small pieces", "in one piece"])
def test_lines_of_all_tasks_are_in_the_order_of_time(
    logs: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(reading, "_PIECE", piece)
    assert found(cluster) == ["worker-0 | a", "worker-1 | b", "worker-0 | c", "worker-1 | d", "worker-0.1 | e"]


def test_logs_are_limited_to_a_task_or_to_previous_attempts(logs: ApiServer, cluster: Cluster) -> None:
    assert found(cluster, "worker-1") == ["worker-1 | b", "worker-1 | d"]
    assert found(cluster, previous=True) == ["worker-0 | a", "worker-0 | c"]


def test_logs_are_limited_to_the_last_time_and_have_it(logs: ApiServer, cluster: Cluster) -> None:
    lines = lines_of(cluster, "digits", "worker-1", How(since=900.0))
    assert [line.time for line in lines] == ["2026-11-23T12:00:02Z", "2026-11-23T12:00:04Z"]
    assert "sinceSeconds=900" in logs.asked[-1][1]


def test_a_pod_without_a_log_is_left_out(logs: ApiServer, cluster: Cluster) -> None:
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", {"message": "is waiting to start"}, code=400)
    assert found(cluster, "worker-1") == []


def test_a_log_that_cannot_be_read_is_said(logs: ApiServer, cluster: Cluster) -> None:
    said: list[str] = []
    cluster.connection.outage.say = said.append
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", Fault(502, message="no route to host"))
    assert found(cluster) == ["worker-0 | a", "worker-0 | c", "worker-0.1 | e"]
    assert said == ["the log of worker-1 cannot be read: no route to host"]


@pytest.mark.timeout(15)  # it took minutes
def test_a_line_without_an_end_is_read_in_time(logs: ApiServer, cluster: Cluster) -> None:
    """As of a progress bar that writes over its line."""
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", b"2026-11-23T12:00:02Z " + b"x" * 50_000_000)
    (line,) = found(cluster, "worker-1")
    assert len(line) == 50_000_000 + len("worker-1 | ")


def test_a_line_of_the_kubelet_has_no_time_and_keeps_its_words(logs: ApiServer, cluster: Cluster) -> None:
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", stamped((2, "b")) + b"unable to retrieve container logs\n")
    assert found(cluster, "worker-1") == ["worker-1 | b", "worker-1 | unable to retrieve container logs"]
