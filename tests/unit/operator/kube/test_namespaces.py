"""The namespaces that are watched follow what resyncs find."""

from __future__ import annotations

import logging

import pytest

from dtjob.kube.namespaces import Watched


async def test_a_refused_namespace_is_not_watched_until_it_answers(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "dtjob.kube.namespaces")
    watched = Watched(["a", "b"])
    await watched.note({})
    assert watched.namespaces == ["a", "b"]
    watched.insights.namespaces.update(watched.namespaces)  # as kopf does at its start
    for _ in range(2):
        await watched.note({"b": "pods is forbidden"})
        assert (watched.namespaces, watched.insights.namespaces) == (["a"], {"a"})
    assert caplog.messages == ["namespace b is left alone until it answers again: pods is forbidden"]
    await watched.note({})
    assert (watched.namespaces, watched.insights.namespaces) == (["a", "b"], {"a", "b"})
    assert caplog.messages[1:] == ["namespace b answers again"]
