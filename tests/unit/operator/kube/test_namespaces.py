"""The namespaces that are watched follow what resyncs find."""

from __future__ import annotations

import logging

import pytest

from dtjob.kube.namespaces import Watched


async def test_a_refused_namespace_is_not_watched_until_it_answers(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "dtjob.kube.namespaces")
    watched = Watched(["a", "b"])
    watched.note({})
    assert (watched.namespaces, watched.changed.is_set()) == (["a", "b"], False)
    watched.note({"b": "pods is forbidden"})
    assert (watched.namespaces, watched.changed.is_set()) == (["a"], True)
    watched.changed.clear()
    watched.note({"b": "pods is forbidden"})
    assert (watched.namespaces, watched.changed.is_set()) == (["a"], False)
    assert caplog.messages == ["namespace b is left alone until it answers again: pods is forbidden"]
    watched.note({})
    assert (watched.namespaces, watched.changed.is_set()) == (["a", "b"], True)
    assert caplog.messages[1:] == ["namespace b answers again"]


def test_the_whole_cluster_is_no_list_of_namespaces():
    assert Watched([]).whole_cluster
    assert not Watched(["a"]).whole_cluster
