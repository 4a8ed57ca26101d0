# SPDX-License-Identifier: Apache-2.0
"""When watches begin, end and begin again."""

import ast
import asyncio
import contextlib
from collections.abc import Callable, Collection
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import dtjob
from dtjob.controller.cluster import ClusterError
from dtjob.kube.watching.job_watches import have_missed_one, watch_forever
from dtjob.kube.watching.namespaces import Watched
from dtjob.times import rfc3339
from tests.unit.operator.builders import NOW
from tests.unit.operator.kube.waiting import going_on
from tests.unit.operator.simulation.time import simulated


class Watches:
    """Stands for kopf: notes what it is to watch and when; its tasks end only as the test says."""

    def __init__(self, fails_after: float | None = None) -> None:
        self.fails_after = fails_after
        self.begun: list[tuple[float, list[str]]] = []
        self.cancelled = 0
        self.under_way = 0

    async def spawn(self, namespaces: list[str]) -> Collection[asyncio.Task[None]]:
        assert self.under_way == 0, "two sets of watches at a time"
        self.begun.append((round(asyncio.get_running_loop().time(), 1), list(namespaces)))
        return [asyncio.create_task(self._watch(self.fails_after)), asyncio.create_task(self._watch(None))]

    async def _watch(self, fails_after: float | None) -> None:
        self.under_way += 1
        try:
            if fails_after is None:
                await asyncio.Event().wait()
            await asyncio.sleep(fails_after or 0)
            raise PermissionError("pods is forbidden")
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1


async def nothing() -> None:
    """A resync that finds nothing new."""


def after(seconds: float, call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, call)


async def watch_for(seconds: float, watches: Watches, watched: Watched, resync=nothing) -> None:  # type: ignore[no-untyped-def]
    async with going_on(watch_forever(watches.spawn, watched, resync)):
        await asyncio.sleep(seconds)
    assert watches.under_way == 0, "a watch outlives the operator"


@simulated
async def test_other_namespaces_are_watched_as_soon_as_a_resync_finds_them() -> None:
    watches, watched = Watches(), Watched(["a", "b"])
    after(5, lambda: watched.note({"b": "pods is forbidden"}))
    after(6, lambda: watched.note({"b": "pods is forbidden"}))
    after(8, lambda: watched.note({}))
    await watch_for(10, watches, watched)
    assert watches.begun == [(0, ["a", "b"]), (5, ["a"]), (8, ["a", "b"])]


@simulated
async def test_no_namespace_left_is_not_the_whole_cluster() -> None:
    watches, watched = Watches(), Watched(["a"])
    watched.note({"a": "pods is forbidden"})
    after(5, lambda: watched.note({}))
    await watch_for(10, watches, watched)
    assert watches.begun == [(5, ["a"])]


@simulated
async def test_a_refused_watch_costs_a_resync_and_not_the_process(caplog: pytest.LogCaptureFixture) -> None:
    watches, watched = Watches(fails_after=1), Watched(["a", "b"])

    async def resync() -> None:
        watches.fails_after = None
        watched.note({"b": "pods is forbidden"})

    await watch_for(10, watches, watched, resync)
    assert [namespaces for _, namespaces in watches.begun] == [["a", "b"], ["a"]]
    assert "the watches ended (pods is forbidden)" in caplog.text


@simulated
async def test_a_bug_in_a_resync_is_logged_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    async def resync() -> None:
        raise KeyError("kueue")

    await watch_for(10, Watches(fails_after=1), Watched([]), resync)
    ended, *cannot = caplog.records
    assert ended.getMessage().startswith("the watches ended")
    assert not ended.exc_info
    assert [(one.getMessage()[:24], bool(one.exc_info)) for one in cannot[:1]] == [("the watches cannot begin", True)]


@simulated
async def test_a_watch_that_just_ends_is_a_failure_too() -> None:
    begun = 0

    async def spawn(_: list[str]) -> list[asyncio.Task[None]]:
        nonlocal begun
        begun += 1
        return [asyncio.create_task(nothing() if begun == 1 else asyncio.sleep(1000))]

    async with going_on(watch_forever(spawn, Watched([]), nothing)):
        await asyncio.sleep(5)
    assert begun == 2


@simulated
async def test_watches_that_keep_failing_begin_soon_and_not_at_once() -> None:
    watches = Watches(fails_after=0)
    await watch_for(30, watches, Watched([]))
    begun = [moment for moment, _ in watches.begun]
    waits = [later - earlier for earlier, later in pairwise(begun)]
    assert waits == pytest.approx([1, 2, 4, 5, 5, 5, 5], abs=0.2)


@simulated
async def test_watches_begin_again_only_once_the_api_server_serves_jobs() -> None:
    """kopf asks once which kinds there are, when it begins."""
    watches = Watches(fails_after=1)

    async def resync() -> None:
        if asyncio.get_running_loop().time() < 20:
            raise ClusterError("the API server knows no DistributedTrainingJob")
        watches.fails_after = None

    await watch_for(40, watches, Watched([]), resync)
    first, second = watches.begun
    assert first[0] == 0
    assert 20 < second[0] < 26


@pytest.mark.parametrize(("age", "missed"), [(5, False), (60, True)])
def test_watches_have_missed_a_job_that_they_do_not_show_after_long(age: int, missed: bool) -> None:
    created = rfc3339(NOW - timedelta(seconds=age))
    assert have_missed_one([{"metadata": {"creationTimestamp": created}}], NOW) == missed


def test_nothing_private_of_kopf_is_imported() -> None:
    """What has no public name may be gone in kopf's next release."""
    package = Path(dtjob.__file__).parent
    imports = [
        name
        for text in map(Path.read_text, package.rglob("*.py"))
        if "kopf" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names))
    ]
    assert "kopf" in imports
    assert [name for name in imports if name.startswith("kopf._")] == []


@pytest.mark.usefixtures("tasks_end_unheard")
@simulated
async def test_a_watch_that_does_not_end_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def stubborn() -> None:
        for _ in range(3):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)

    async def spawn(_: list[str]) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(stubborn(), name="watcher for pods")]

    async with going_on(watch_forever(spawn, Watched([]), nothing)):
        await asyncio.sleep(5)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 20
    assert "watcher for pods does not end" in caplog.text
