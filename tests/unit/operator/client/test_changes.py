# SPDX-License-Identifier: Apache-2.0
"""One object as it changes."""

import time

import pytest

from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotFound
from tests.unit.operator.client.api_server import ApiServer

PODS = "/api/v1/namespaces/team/pods"


def pod(version: str) -> dict[str, object]:
    return {"metadata": {"name": "a", "resourceVersion": version}}


def test_an_object_is_read_and_then_watched_from_its_version(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {PODS}/a", pod("1"))
    events = [{"type": "MODIFIED", "object": pod("2")}, {"type": "DELETED", "object": pod("3")}]
    server.answer(f"WATCH {PODS}", events)
    assert list(changes(cluster, "Pod", "a")) == [pod("1"), pod("2"), None]
    assert "resourceVersion=1" in server.asked[1][1]


def test_a_watch_that_is_too_old_begins_again(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {PODS}/a", pod("1"), pod("9"))
    old = [{"type": "ERROR", "object": {"code": 410, "message": "too old"}}]
    server.answer(f"WATCH {PODS}", old, [{"type": "DELETED", "object": pod("9")}])
    assert list(changes(cluster, "Pod", "a")) == [pod("1"), pod("9"), None]


def test_changes_end_at_the_deadline(server: ApiServer, cluster: Cluster) -> None:
    server.answer(f"GET {PODS}/a", pod("1"))
    assert list(changes(cluster, "Pod", "a", time.monotonic() - 1)) == []


def test_a_missing_object_is_an_error_at_the_start(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        next(changes(cluster, "Pod", "a"))
