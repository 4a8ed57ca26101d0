# SPDX-License-Identifier: Apache-2.0
"""The namespaces that are watched follow what resyncs find."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.calls.client import Kube
from dtjob.kube.watching.informer import Informer
from dtjob.kube.watching.namespaces import LOOK, Watched, look_for_refused
from tests.unit.operator.kube.waiting import going_on
from tests.unit.operator.simulation.time import simulated


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


class Namespaces:
    """Answers for those of `answering`, and refuses the others."""

    def __init__(self) -> None:
        self.answering: set[str | None] = set()
        self.asked: list[str | None] = []
        self.forbidden = ""
        """A kind that nobody answers for."""

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[tuple[list[Any], int]]:
        self.asked.append(namespace)
        if namespace not in self.answering or kind == self.forbidden:
            raise ApiError(403, "Forbidden", f"{kind} is forbidden")
        yield [], 5

    def informers(self, *namespaces: str) -> list[Informer]:
        store, queue = Store(), WorkQueue[JobKey]()
        return [Informer(cast(Kube, self), kind, store, queue, namespaces) for kind in (*LISTED_KINDS, KIND)]


@simulated
async def test_a_refused_namespace_is_asked_for_until_it_answers():
    """Else the next resync finds it, minutes later. Those that answer are not listed for its sake."""
    kube, watched = Namespaces(), Watched(["a", "b", "c"])
    async with going_on(look_for_refused(kube.informers("a", "b", "c"), watched)):
        await asyncio.sleep(20)
        assert kube.asked == []
        watched.note(dict.fromkeys(("b", "c"), "pods is forbidden"))
        await asyncio.sleep(10)
        assert watched.namespaces == ["a"]
        assert sorted(map(str, kube.asked)) == ["b", "b", "c", "c"]
        watched.changed.clear()
        kube.answering, kube.asked = {"b"}, []
        await asyncio.sleep(10)
    assert watched.namespaces == ["a", "b"]
    assert watched.changed.is_set()
    assert sorted(map(str, kube.asked)) == ["b"] * 5 + ["c"]


@simulated
async def test_a_namespace_that_answers_only_in_part_stays_refused_and_is_listed_ever_less_often():
    kube, watched = Namespaces(), Watched(["a", "b"])
    kube.answering, kube.forbidden = {"b"}, "NetworkPolicy"
    watched.note({"b": "networkpolicies is forbidden"})
    async with going_on(look_for_refused(kube.informers("a", "b"), watched)):
        await asyncio.sleep(600)
    assert len(kube.asked) <= 3 * (600 / LOOK.longest + 3)
    assert watched.namespaces == ["a"]


def test_a_namespace_that_was_not_asked_stays_as_it_is():
    """A resync may find that it is refused while those that were refused before are asked."""
    watched = Watched(["a", "b", "c"])
    watched.note({"b": "pods is forbidden"})
    asked = watched.refused
    watched.note(dict.fromkeys(("b", "c"), "pods is forbidden"))
    watched.note({}, asked)
    assert watched.namespaces == ["a", "b"]
