# SPDX-License-Identifier: Apache-2.0
"""The jobs of a cluster for a page, from a stand-in for its API server."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.client import streams
from dtjob.client.cluster import Cluster, connect
from dtjob.client.errors import Refused
from dtjob.client.patience import AGAIN
from dtjob.ui.cluster_source import ClusterSource, OpenJob
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, RUNNING, pod, stamped, stored

KEY = ("team", "digits")


def until(condition: Callable[[], Any]) -> None:
    """Wait for what threads do."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pods whose supervisors were asked."""
    names = list[str]()

    async def answer(_: Cluster, name: str, port: int, path: str) -> bytes:
        names.append(name)
        return b'{"attempt": 0, "state": "training", "step": 260, "loss": 0.25, "metrics": {"accuracy": 0.9}}'

    monkeypatch.setattr(streams, "answer", answer)
    return names


@pytest.fixture
def source(server: ApiServer, tmp_path: Path, asked: list[str]) -> Iterator[ClusterSource]:
    metadata = {"resourceVersion": "1"}
    digits = {**stored(replicaSpecs={"worker": {"replicas": 2}}), "status": RUNNING}
    server.answer(f"GET {JOBS}", {"items": [digits], "metadata": metadata})
    server.answer(f"GET {PODS}", {"items": [pod("worker-0"), pod("worker-1")], "metadata": metadata})
    server.answer(f"GET {PODS}/digits-worker-0-0/log", stamped((3, "\x1b[31mred\x1b[0m"), (4, "<b>")))
    server.answer(f"GET {PODS}/digits-worker-1-0/log", stamped((5, "other")))
    for number in (0, 1):
        server.answer(f"GET {PODS}/digits-worker-{number}-0", pod(f"worker-{number}", state={"terminated": {}}))
    server.answer(f"WATCH {JOBS}", Fault(hold=True, broken=b" "))
    server.answer(f"WATCH {PODS}", Fault(hold=True, broken=b" "))
    yield ClusterSource(connect(str(server.kubeconfig(tmp_path))))
    server.closing.set()


def watches(server: ApiServer, path: str) -> int:
    return sum(asked.startswith(f"{path}?") and "watch=true" in asked for _, asked, _ in list(server.asked))


@pytest.fixture
def viewed(source: ClusterSource) -> Iterator[OpenJob]:
    view = source.view(KEY, None)
    yield view
    source.close(view)


def test_the_jobs_are_there_at_once(source: ClusterSource) -> None:
    assert source.title == "namespace team"
    assert source.hub.job(KEY) is not None


def test_a_user_who_may_not_list_jobs_learns_of_it_at_the_start(server: ApiServer, tmp_path: Path) -> None:
    server.answer(f"GET {JOBS}", Fault(403, message="no"))
    with pytest.raises(Refused, match="no"):
        ClusterSource(connect(str(server.kubeconfig(tmp_path))))


def test_all_browsers_share_one_watch(server: ApiServer, source: ClusterSource) -> None:
    views = [source.view(KEY, None) for _ in range(3)]
    until(lambda: watches(server, PODS))
    assert views[0] is views[2]
    assert watches(server, JOBS) == 1
    for view in views[:2]:
        source.close(view)
    assert source.view(KEY, None) is views[0]
    source.close(views[0])
    source.close(views[0])
    assert source.view(KEY, None) is not views[0]


def test_the_log_is_that_of_the_task_that_decides_success(viewed: OpenJob) -> None:
    until(lambda: len(viewed.log()) == 2)
    assert viewed.log() == ["red", "<b>"]


def test_the_log_of_another_task_can_be_asked_for(source: ClusterSource) -> None:
    view = source.view(KEY, "worker-1")
    until(lambda: view.log() == ["other"])  # before a line has come, the last failure is shown
    source.close(view)
    with pytest.raises(BadInput, match="is no task"):
        source.view(KEY, "worker-1/../..")


def test_the_page_says_where_the_log_of_a_pod_is_that_is_gone(source: ClusterSource, server: ApiServer) -> None:
    server.answer(f"GET {PODS}", {"items": [], "metadata": {"resourceVersion": "1"}})
    where = "dtjob logs digits -n team --task worker-1 --attempt 0 prints what is kept of its first log"
    view = source.view(KEY, "worker-1")
    assert view.log() == [f"no pod of worker-1 is there; {where}", "Traceback", "ValueError: no"]
    source.close(view)
    view = source.view(KEY, "worker-0")
    assert view.log()[1:] == []  # another task failed
    source.close(view)


def test_reports_of_the_supervisors_are_shown_and_drawn(source: ClusterSource, asked: list[str]) -> None:
    view = source.view(KEY, None)
    until(lambda: [curve for curve in view.curves() if curve["name"] == "accuracy"])
    source.close(view)
    assert [*view.reports] == ["worker-0", "worker-1"]
    assert sorted(set(asked)) == ["digits-worker-0-0", "digits-worker-1-0"]
    found = {one["name"]: (one["steps"], one["values"]) for one in view.curves()}
    assert found["loss"] == ([251, 260], [0.5, 0.25])
    assert found["accuracy"] == ([260], [0.9])


def test_an_outage_is_told_until_it_is_over(source: ClusterSource) -> None:
    say = source._cluster.connection.outage.say
    say("waiting for the cluster, 5 s so far: refused")
    assert source.hub.trouble == "waiting for the cluster, 5 s so far: refused"
    say(AGAIN)
    assert source.hub.trouble == ""


def test_a_view_that_is_closed_asks_nothing_more(source: ClusterSource, asked: list[str]) -> None:
    view = source.view(KEY, None)
    until(lambda: asked)
    source.close(view)
    until(lambda: not any(thread.is_alive() for thread in view.threads))
