# SPDX-License-Identifier: Apache-2.0
"""The namespaces that are watched follow what resyncs find."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dtjob.kube.api_error import ApiError
from dtjob.kube.watching.namespaces import Watched, look_for_refused
from tests.unit.operator.simulation.time import SimulatedLoop


async def test_a_refused_namespace_is_not_watched_until_it_answers(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "dtjob.kube.watching.namespaces")
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


class Namespaces:
    """Answers for those of `answering`, and refuses the others."""

    def __init__(self) -> None:
        self.answering: set[str] = set()
        self.asked: list[str | None] = []
        self.forbidden = ""
        """A kind that nobody answers for."""

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[tuple[list[Any], int]]:
        self.asked.append(namespace)
        if namespace not in self.answering or kind == self.forbidden:
            raise ApiError(403, "Forbidden", "distributedtrainingjobs is forbidden")
        yield [], 5


def test_a_refused_namespace_is_asked_for_until_it_answers():
    """Else the next resync finds it, minutes later."""

    async def story() -> tuple[list[str | None], bool, bool]:
        kube, watched, answers = Namespaces(), Watched(["a", "b"]), asyncio.Event()
        looking = asyncio.create_task(look_for_refused(kube, watched, answers))
        await asyncio.sleep(20)
        assert kube.asked == []
        watched.note({"b": "pods is forbidden"})
        await asyncio.sleep(10)
        before = answers.is_set()
        kube.answering = {"b"}
        await asyncio.sleep(5)
        looking.cancel()
        return kube.asked, before, answers.is_set()

    loop = SimulatedLoop()
    refused_twice, each_kind = 2, 4
    assert loop.run_until_complete(story()) == (["b"] * (refused_twice + each_kind), False, True)
    loop.close()


def test_a_namespace_that_answers_only_in_part_brings_no_resync():
    """It would be refused again, and all of the others listed every few seconds for nothing."""

    async def story() -> bool:
        kube, watched, answers = Namespaces(), Watched(["a", "b"]), asyncio.Event()
        kube.answering, kube.forbidden = {"b"}, "NetworkPolicy"
        watched.note({"b": "networkpolicies is forbidden"})
        looking = asyncio.create_task(look_for_refused(kube, watched, answers))
        await asyncio.sleep(20)
        looking.cancel()
        return answers.is_set()

    loop = SimulatedLoop()
    assert loop.run_until_complete(story()) is False
    loop.close()
