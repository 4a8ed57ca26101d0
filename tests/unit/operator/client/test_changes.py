# SPDX-License-Identifier: Apache-2.0
"""One object as it changes."""

import itertools

from dtjob.client.changes import batches, changes
from dtjob.client.cluster import Cluster
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import PODS


def pod(version: str) -> dict[str, object]:
    return {"metadata": {"name": "a", "resourceVersion": version}}


def test_an_object_is_read_and_then_watched_from_its_version(server: ApiServer, cluster: Cluster) -> None:
    """A watch that is too old begins again."""
    server.answer(f"GET {PODS}/a", pod("1"), pod("9"))
    old = [{"type": "MODIFIED", "object": pod("2")}, {"type": "ERROR", "object": {"code": 410, "message": "too old"}}]
    server.answer(f"WATCH {PODS}", old, [{"type": "DELETED", "object": pod("9")}])
    assert list(changes(cluster, "Pod", "a")) == [pod("1"), pod("2"), pod("9"), None]
    assert "resourceVersion=1" in server.asked[1][1]


def test_all_objects_come_first_and_what_was_missed_comes_after_the_next_list(
    server: ApiServer, cluster: Cluster
) -> None:
    def named(name: str, version: str) -> dict[str, object]:
        return {"metadata": {"name": name, "uid": name, "resourceVersion": version}}

    first = {"items": [named("a", "1"), named("b", "2"), named("c", "3")], "metadata": {"resourceVersion": "3"}}
    later = {"items": [named("a", "6"), named("b", "2"), named("d", "7")], "metadata": {"resourceVersion": "7"}}
    server.answer(f"GET {PODS}", first, later)
    old = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
    server.answer(
        f"WATCH {PODS}",
        [{"type": "MODIFIED", "object": named("a", "4")}],
        [old],
        [{"type": "DELETED", "object": named("d", "8")}],
    )
    found = itertools.islice(batches(cluster, "Pod"), 4)
    seen = [[(change, one["metadata"]["name"]) for change, one in batch] for batch in found]
    assert seen == [
        [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")],
        [("MODIFIED", "a")],
        [("MODIFIED", "a"), ("ADDED", "d"), ("DELETED", "c")],
        [("DELETED", "d")],
    ]
    assert "resourceVersion=4" in server.asked[2][1]
