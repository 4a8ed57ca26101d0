# SPDX-License-Identifier: Apache-2.0
"""Logs of all tasks and attempts, each line once and with its task."""

import io
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dtjob.cli.watching import logs as reading
from dtjob.cli.watching.logs import READER_GONE, How, Printer, Tails, print_logs
from dtjob.client.cluster import Cluster
from tests.unit.operator.cli.watching.jobs import RUNNING, job, pod
from tests.unit.operator.client.api_server import ApiServer, Fault

PODS = "/api/v1/namespaces/team/pods"


def stamped(*lines: tuple[int, str]) -> bytes:
    return b"".join(f"2026-11-23T12:00:{second:02}Z {text}\n".encode() for second, text in lines)


@pytest.fixture
def logs(server: ApiServer) -> ApiServer:
    pods = [pod("worker-0"), pod("worker-0", 1), pod("worker-1")]
    server.answer(f"GET {PODS}", {"items": pods, "metadata": {"resourceVersion": "1"}})
    server.answer(f"GET {PODS}/digits-worker-0-0/log", stamped((1, "a"), (3, "c")))
    server.answer(f"GET {PODS}/digits-worker-0-1/log", stamped((5, "e")))
    server.answer(f"GET {PODS}/digits-worker-1-0/log", stamped((2, "b"), (4, "d")))
    return server


def printed(cluster: Cluster, task: str | None = None, **how: Any) -> list[str]:
    out = io.StringIO()
    print_logs(cluster, "digits", Printer(out), task, How(**how))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_lines_of_all_tasks_are_in_the_order_of_time(logs: ApiServer, cluster: Cluster) -> None:
    assert printed(cluster) == ["worker-0 | a", "worker-1 | b", "worker-0 | c", "worker-1 | d", "worker-0.1 | e"]


def test_logs_are_limited_to_a_task_or_to_previous_attempts(logs: ApiServer, cluster: Cluster) -> None:
    assert printed(cluster, "worker-1") == ["worker-1 | b", "worker-1 | d"]
    assert printed(cluster, previous=True) == ["worker-0 | a", "worker-0 | c"]


def test_logs_are_limited_to_the_last_time_and_show_it(logs: ApiServer, cluster: Cluster) -> None:
    assert printed(cluster, "worker-1", since=900.0, timestamps=True) == [
        "worker-1 | 2026-11-23T12:00:02Z b",
        "worker-1 | 2026-11-23T12:00:04Z d",
    ]
    assert "sinceSeconds=900" in logs.asked[-1][1]


def test_a_pod_without_a_log_is_left_out(logs: ApiServer, cluster: Cluster) -> None:
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", {"message": "is waiting to start"}, code=400)
    assert printed(cluster, "worker-1") == []


def test_a_log_that_cannot_be_read_is_said(logs: ApiServer, cluster: Cluster) -> None:
    said: list[str] = []
    cluster.connection.outage.say = said.append
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", Fault(502, message="no route to host"))
    assert printed(cluster) == ["worker-0 | a", "worker-0 | c", "worker-0.1 | e"]
    assert said == ["the log of worker-1 cannot be read: no route to host"]


def test_colours_are_for_terminals() -> None:
    out = io.StringIO()
    Printer(out, coloured=True).line("worker-0", "a")
    assert out.getvalue() == "\x1b[36mworker-0     | \x1b[0ma\n"


def test_a_progress_bar_is_one_line_with_its_task(logs: ApiServer, cluster: Cluster) -> None:
    bar = "\b\b\r 1/52 \x1b[32m━\x1b[0m" + "\b" * 8 + "\r52/52 \x1b[32m━━\x1b[0m"
    logs.answer(f"GET {PODS}/digits-worker-0-0/log", stamped((1, bar), (3, "c")))
    assert printed(cluster, "worker-0") == ["worker-0 | 52/52 ━━", "worker-0 | c", "worker-0.1 | e"]
    out = io.StringIO()
    Printer(out, coloured=True).line("worker-0", bar)
    assert out.getvalue() == "\x1b[36mworker-0     | \x1b[0m52/52 \x1b[32m━━\x1b[0m\n"


def test_followed_logs_come_once_also_of_pods_that_begin_later(logs: ApiServer, cluster: Cluster) -> None:
    later = pod("worker-2")
    logs.answer(f"GET {PODS}/digits-worker-2-0/log", stamped((6, "f")))
    first = {"items": [pod("worker-1"), pod("worker-3", state={"waiting": {}})], "metadata": {"resourceVersion": "1"}}
    logs.answer(f"GET {PODS}", first, {"items": [pod("worker-1"), later], "metadata": {"resourceVersion": "3"}})
    begun = {**later, "metadata": {**later["metadata"], "resourceVersion": "2"}}
    logs.answer(f"WATCH {PODS}", [{"type": "ADDED", "object": begun}])
    out = io.StringIO()
    tails = Tails(cluster, "digits", Printer(out))
    tails.start()
    tails.finish()
    assert sorted(" ".join(line.split()) for line in out.getvalue().splitlines()) == [
        "worker-1 | b", "worker-1 | d", "worker-2 | f",
    ]  # fmt: skip


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
    out, said, most = io.StringIO(), list[str](), list[int]()
    cluster.connection.outage.say = said.append
    tails = Tails(cluster, "digits", Printer(out))

    def runs(_: Any) -> bool:
        most.append(sum(thread.is_alive() for thread in tails.threads()))
        return False

    monkeypatch.setattr(tails, "_runs", runs)
    tails.start()
    deadline = time.monotonic() + 10
    while len(most) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    tails.finish()
    assert sorted(line.split()[0] for line in out.getvalue().splitlines()) == [
        f"worker-{number}" for number in range(6)
    ]
    assert max(most) <= 4  # one that begins the next is about to end
    assert said == ["the logs of 2 pods are followed; for another task, give --task, such as worker-7"]


def test_large_logs_are_merged_in_pieces(logs: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_PIECE", 7)
    assert printed(cluster) == ["worker-0 | a", "worker-1 | b", "worker-0 | c", "worker-1 | d", "worker-0.1 | e"]


def test_lines_of_the_same_moment_are_all_followed(logs: ApiServer, cluster: Cluster) -> None:
    logs.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {"resourceVersion": "1"}})
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", stamped((2, "a"), (2, "b"), (2, "c")))
    out = io.StringIO()
    tails = Tails(cluster, "digits", Printer(out))
    tails.start()
    tails.finish()
    assert [line.split()[-1] for line in out.getvalue().splitlines()] == ["a", "b", "c"]


def test_following_ends_when_its_reader_has_gone(logs: ApiServer, tmp_path: Path) -> None:
    stored = {**job(**RUNNING), "metadata": {**job()["metadata"], "resourceVersion": "1"}}
    logs.answer("GET /apis/training.dtjob.dev/v1beta1/namespaces/team/distributedtrainingjobs/digits", stored)
    logs.answer(f"GET {PODS}/digits-worker-1-0/log", stamped(*((2, "x" * 1000) for _ in range(1000))))
    command = [sys.executable, "-m", "dtjob", "logs", "digits", "-f", "--kubeconfig", str(logs.kubeconfig(tmp_path))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert running.returncode == READER_GONE
    assert "Traceback" not in said
