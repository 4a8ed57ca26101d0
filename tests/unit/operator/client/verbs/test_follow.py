# SPDX-License-Identifier: Apache-2.0
"""Logs that are followed: each line once, and with its task."""

import time
from typing import Any

import pytest

from dtjob.client.cluster import Cluster
from dtjob.client.verbs import follow as reading
from dtjob.client.verbs.follow import Tails
from dtjob.client.verbs.logs import Line
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import PODS, pod, stamped


def followed(cluster: Cluster, *until: str) -> list[Line]:
    """The lines of the logs. They are not left before a line has this text."""
    out = list[Line]()
    tails = Tails(cluster, "digits", out.append)
    tails.start()
    deadline = time.monotonic() + 10
    while not {*until} <= {line.text for line in out} and time.monotonic() < deadline:
        time.sleep(0.01)
    tails.finish()
    return out


def test_followed_logs_come_once_also_of_pods_that_begin_later(logs: ApiServer, cluster: Cluster) -> None:
    later = pod("worker-2")
    logs.answer(f"GET {PODS}/digits-worker-2-0/log", stamped((6, "f")))
    first = {"items": [pod("worker-1"), pod("worker-3", state={"waiting": {}})], "metadata": {"resourceVersion": "1"}}
    logs.answer(f"GET {PODS}", first, {"items": [pod("worker-1"), later], "metadata": {"resourceVersion": "3"}})
    begun = {**later, "metadata": {**later["metadata"], "resourceVersion": "2"}}
    logs.answer(f"WATCH {PODS}", [{"type": "ADDED", "object": begun}])
    out = followed(cluster)
    assert sorted((line.task, line.text) for line in out) == [("worker-1", "b"), ("worker-1", "d"), ("worker-2", "f")]


def test_a_few_logs_are_followed_at_a_time_and_that_is_said(
    logs: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job of 300 pods."""
    monkeypatch.setattr(reading, "MOST_TAILS", 2)
    logs.answer(f"WATCH {PODS}", Fault(hold=True))
    pods = [pod(f"worker-{number}") for number in range(6)]
    logs.answer(f"GET {PODS}", {"items": pods, "metadata": {"resourceVersion": "1"}})
    for number in range(6):
        logs.answer(f"GET {PODS}/digits-worker-{number}-0/log", stamped((number, "a")))
    out, said, most = list[Line](), list[str](), list[int]()
    cluster.connection.outage.say = said.append
    tails = Tails(cluster, "digits", out.append)

    def runs(_: Any) -> bool:
        most.append(sum(thread.is_alive() for thread in tails.threads()))
        return False

    monkeypatch.setattr(tails, "_runs", runs)
    tails.start()
    deadline = time.monotonic() + 10
    while len(most) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    tails.finish()
    assert sorted(line.task for line in out) == [f"worker-{number}" for number in range(6)]
    assert max(most) <= 4  # one that begins the next is about to end
    assert said == ["the logs of 2 pods are followed; for another task, give --task, such as worker-7"]


def test_a_line_of_the_kubelet_has_no_time_and_does_not_end_a_log(logs: ApiServer, cluster: Cluster) -> None:
    """After it the log is asked for again, from the last time that is one."""
    logs.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {"resourceVersion": "1"}})
    lines = stamped((2, "a")) + b"unable to retrieve container logs\n"
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", lines, lines + stamped((3, "b")))
    ended = pod("worker-1", state={"terminated": {}})
    logs.answer(f"GET {PODS}/digits-worker-1-0", pod("worker-1"), ended)
    out = followed(cluster, "b")
    assert [line.text for line in out if line.text in "ab"] == ["a", "b"]
    assert "unable to retrieve container logs" in [line.text for line in out]
    assert not [path for _, path, _ in logs.asked if "sinceTime=unable" in path]


def test_lines_of_the_same_moment_are_all_followed(logs: ApiServer, cluster: Cluster) -> None:
    logs.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {"resourceVersion": "1"}})
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", stamped((2, "a"), (2, "b"), (2, "c")))
    out = followed(cluster)
    assert [line.text for line in out] == ["a", "b", "c"]
