# SPDX-License-Identifier: Apache-2.0
"""Lists and watches: what they bring into the store, and what becomes of namespaces that may not be read."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

import pytest

from dtjob.api.job import KIND
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.backoff import Backoff
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.watching import informer
from dtjob.kube.watching.informer import Informer, VersionsWentBack, resync, take_in
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.kube.waiting import going_on, until
from tests.unit.operator.simulation.operator import job_manifest
from tests.unit.operator.simulation.time import simulated

KEY = ("default", "digits")
Page = tuple[list[Manifest], int]
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
BROKEN = ApiError(500, "InternalError", "no leader")
EXPIRED = ApiError(410, "Expired", "too old resource version")


class Cluster:
    """Lists a job of each namespace that does not answer with an error; its watches bring what is in `events`."""

    def __init__(self, *namespaces: str, **errors: ApiError) -> None:
        self.namespaces, self.errors = namespaces, errors
        self.fails_at = ""
        """The only kind that fails; empty: each of them."""
        self.version = 50
        self.events: asyncio.Queue[tuple[str, Manifest] | Exception | None] = asyncio.Queue()
        self.asked: list[tuple[str, str | None, int]] = []
        """The LISTs, with version 0, and the watches, by kind and namespace."""

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
        self.asked.append((kind, namespace, 0))
        if (error := self.errors.get(namespace or "everywhere")) and self.fails_at in ("", kind):
            raise error
        found = job_manifest(builders.job(uid=f"uid-{namespace}"))
        found["metadata"] |= {"namespace": namespace, "resourceVersion": "10"}
        yield [found] if kind == KIND and namespace in self.namespaces else [], self.version

    async def watch(
        self, kind: str, namespace: str | None, selector: str, version: int
    ) -> AsyncIterator[tuple[str, Manifest]]:
        self.asked.append((kind, namespace, version))
        while (event := await self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event


def pod(name: str, version: int, **metadata: str) -> Manifest:
    made = builders.pod(builders.job(), name)
    made["metadata"] |= {"uid": name, "resourceVersion": str(version), **metadata}
    return made


def informers(cluster: Any, store: Store, *namespaces: str) -> list[Informer]:
    queue: WorkQueue[JobKey] = WorkQueue()
    return [Informer(cluster, kind, store, queue, namespaces) for kind in (*LISTED_KINDS, KIND)]


def uids(store: Store) -> set[str]:
    return {one["metadata"]["uid"] for one in store.children(KEY).objects}


async def due(queue: WorkQueue[JobKey]) -> list[JobKey]:
    keys = [await queue.get() for _ in range(len(queue))]
    for key in keys:
        queue.done(key)
    return keys


# Lists


async def test_a_refused_namespace_does_not_affect_the_others() -> None:
    store, cluster = Store(), Cluster("a", "b")
    kinds = informers(cluster, store, "a", "b")
    await resync(kinds)
    cluster.namespaces, cluster.errors = (), {"b": FORBIDDEN}
    assert await resync(kinds) == {"b": "pods is forbidden"}
    assert store.job_keys() == [("b", "digits")]  # nobody said that it is gone


async def test_a_namespace_that_is_forbidden_for_one_kind_is_left_out_for_all_kinds() -> None:
    """A job without its pods would look like one whose pods were all deleted."""
    store, cluster = Store(), Cluster("a", "b", b=FORBIDDEN)
    cluster.fails_at = "Service"
    assert await resync(informers(cluster, store, "a", "b")) == {"b": "pods is forbidden"}
    assert [kind for kind, namespace, _ in cluster.asked if namespace == "b"] == ["Pod", "Service"]
    assert store.job_keys() == [("a", "digits")]


async def test_an_etcd_that_was_restored_is_seen() -> None:
    """Whatever is told for long is older than what is known, and would be taken for known."""
    cluster = Cluster("a")
    kinds = informers(cluster, Store(), "a")
    for version in (50, 50, 60):
        cluster.version = version
        await resync(kinds)
    cluster.version = 59
    with pytest.raises(VersionsWentBack, match="of version 59, and an earlier one was of 60"):
        await resync(kinds)


async def test_a_failure_waits_for_what_other_namespaces_still_tell() -> None:
    """Their jobs are due then: the next resync finds them in the store, and no difference."""

    class Slow(Cluster):
        async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
            async for page in super().pages(kind, namespace, selector):
                await asyncio.sleep(0.01)
                yield page

    queue = WorkQueue[JobKey]()
    slow: Any = Slow("a", b=BROKEN)
    with pytest.raises(ApiError):
        await Informer(slow, KIND, Store(), queue, ["a", "b"]).resync()
    assert await due(queue) == [("a", "digits")]


@pytest.mark.parametrize(
    ("cluster", "namespaces"),
    [
        (Cluster(everywhere=FORBIDDEN), []),
        (Cluster(a=FORBIDDEN, b=FORBIDDEN), ["a", "b"]),
        (Cluster("a", b=BROKEN), ["a", "b"]),
    ],
    ids=["whole cluster", "all of them", "another error"],
)
async def test_a_failed_list_is_raised_if_no_namespace_is_left_or_the_failure_may_pass(
    cluster: Cluster, namespaces: list[str]
) -> None:
    with pytest.raises(ApiError):
        await resync(informers(cluster, Store(), *namespaces))


class Paged:
    """Lists pods page by page; `between` happens after each page was given."""

    def __init__(self, *pages: list[Manifest], between: Callable[[], object]) -> None:
        self._pages, self._between = pages, between

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
        for page in self._pages if kind == "Pod" else [[]]:
            yield page, 50
            self._between()


async def test_changes_watched_between_two_pages_of_a_list_are_kept() -> None:
    store = Store()
    early, late = pod("worker-0", 10), pod("worker-1", 20)
    changed = pod("worker-1", 60, deletionTimestamp="2026-11-21T10:00:00Z")

    def meanwhile() -> None:
        store.remove(pod("worker-0", 55))
        store.apply(changed)
        store.apply(pod("chief-0", 58))

    await resync(informers(Paged([early], [late], between=meanwhile), store))
    found = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in store.children(KEY).objects}
    assert found == {"worker-1": "60", "chief-0": "58"}


async def test_only_one_page_is_in_memory() -> None:
    store, alive = Store(), []

    class Tracked(dict[str, object]):
        def __init__(self, manifest: Manifest) -> None:
            super().__init__(manifest)
            alive.append(weakref.ref(self))

    class Endless:
        async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
            for first in range(0, 50 if kind == "Pod" else 1, 10):
                names = [f"worker-{number}" for number in range(first, first + 10)] if kind == "Pod" else []
                yield [cast(Manifest, Tracked(pod(name, 10))) for name in names], 50
                assert sum(one() is not None for one in alive) <= 10, "whole pods of earlier pages are still there"

    await resync(informers(Endless(), store))
    assert len(store.children(KEY).objects) == 50
    assert len(alive) == 50


class Overtaken(Cluster):
    """Has a list of each time that it is asked, and answers the first one last."""

    def __init__(self) -> None:
        super().__init__()
        self.versions, self.answers = count(50), asyncio.Event()

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
        version = next(self.versions)
        if version == 50:
            await self.answers.wait()
        yield [], version


async def test_a_list_that_is_overtaken_by_another_one_raises_no_error() -> None:
    """As after an outage, with calls that hang at several API servers."""
    cluster = Overtaken()
    kinds = informers(cluster, Store())
    first = asyncio.create_task(resync(kinds))
    await asyncio.sleep(0)
    await resync(kinds)
    cluster.answers.set()
    await first
    await resync(kinds)


# What one object does to store and queue


async def test_only_what_changes_something_makes_a_job_due(monkeypatch: pytest.MonkeyPatch) -> None:
    store, queue = Store(), WorkQueue[JobKey]()
    monkeypatch.setattr(informer, "gather_seconds", lambda children: 0.0)
    monkeypatch.setattr(informer, "SETTLE_SECONDS", 0.0)
    found = builders.pod(builders.job(), "chief-0")
    for happened, wanted in ((None, [KEY]), ("MODIFIED", []), ("DELETED", [KEY]), ("DELETED", []), ("ADDED", [])):
        take_in(store, queue, happened, found)
        assert await due(queue) == wanted, happened
    assert store.children(KEY).objects == ()


async def test_a_failed_pod_makes_its_job_due_at_once_and_what_comes_together_is_gathered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, queue = Store(), WorkQueue[JobKey]()
    queue.add(KEY)
    assert await due(queue) == [KEY]
    found = pod("chief-0", 10)
    monkeypatch.setattr(informer, "gather_seconds", lambda children: {1: 0.0}[children])  # it has one child
    take_in(store, queue, "ADDED", found)
    assert await due(queue) == []
    failed = {**pod("chief-0", 11), "status": {**builders.ended(1, builders.NOW), "phase": "Failed"}}
    take_in(store, queue, "MODIFIED", failed)
    assert await due(queue) == [KEY]


# Watches


@asynccontextmanager
async def watching(cluster: Cluster, store: Store, *namespaces: str) -> AsyncIterator[asyncio.Task[None]]:
    """Pods, listed once and watched meanwhile."""
    pods = Informer(cluster, "Pod", store, WorkQueue(), namespaces)
    await pods.resync()
    async with going_on(pods.watch()) as task:
        yield task


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "RETRY", Backoff(0.001, 0.001))
    monkeypatch.setattr(informer, "RECONNECT_SECONDS", 0.001)


@simulated
async def test_a_watch_that_is_told_when_to_ask_again_waits_for_so_long() -> None:
    cluster, busy = Cluster(), ApiError(429, "TooManyRequests", "later")
    busy.retry_after = 30
    async with watching(cluster, Store()):
        cluster.events.put_nowait(busy)
        await asyncio.sleep(29)
        assert len(cluster.asked) == 2
        await asyncio.sleep(2)
        assert len(cluster.asked) == 3


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("end", [None, ClusterError("it broke")], ids=["it ends well", "it breaks"])
async def test_a_watch_continues_where_it_ended(end: Exception | None) -> None:
    cluster, store = Cluster(), Store()
    async with watching(cluster, store):
        cluster.events.put_nowait(("ADDED", pod("worker-0", 55)))
        cluster.events.put_nowait(("BOOKMARK", {"metadata": {"resourceVersion": "58"}}))
        cluster.events.put_nowait(end)
        await until(lambda: len(cluster.asked) == 3)
        assert uids(store) == {"worker-0"}
        cluster.events.put_nowait(("DELETED", pod("worker-0", 60)))
        await until(lambda: uids(store) == set())
    assert cluster.asked == [("Pod", None, 0), ("Pod", None, 50), ("Pod", None, 58)]


@pytest.mark.usefixtures("quick")
async def test_an_object_that_was_deleted_while_the_watch_had_expired_is_removed() -> None:
    cluster, store = Cluster(), Store()
    async with watching(cluster, store):
        cluster.events.put_nowait(("ADDED", pod("worker-0", 55)))
        cluster.version = 70
        cluster.events.put_nowait(EXPIRED)
        await until(lambda: len(cluster.asked) == 4)
        assert uids(store) == set()
    assert cluster.asked[2:] == [("Pod", None, 0), ("Pod", None, 70)]


@pytest.mark.usefixtures("quick")
async def test_the_watches_of_other_namespaces_go_on_while_one_is_refused() -> None:
    cluster, store = Cluster(b=FORBIDDEN), Store()
    async with watching(cluster, store, "default", "b"):
        await until(lambda: cluster.asked.count(("Pod", "b", 0)) > 2)
        cluster.errors = {}
        await until(lambda: ("Pod", "b", 50) in cluster.asked)
    assert cluster.asked.count(("Pod", "default", 50)) == 1


async def test_a_deletion_of_which_no_watch_has_told_is_found_by_the_next_list() -> None:
    """That is all for which pods are listed each hour."""
    cluster, store, queue = Cluster(), Store(), WorkQueue[JobKey]()
    pods = Informer(cluster, "Pod", store, queue)
    take_in(store, queue, "ADDED", pod("worker-0", 40))
    await pods.resync()
    assert uids(store) == set()
    assert await due(queue) == [KEY]


BACK = ("BOOKMARK", {"metadata": {"resourceVersion": "49"}})


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("told", [EXPIRED, BACK], ids=["expired", "bookmark"])
async def test_a_watch_after_an_etcd_was_restored_ends_with_that(told: Any) -> None:
    cluster = Cluster()
    async with watching(cluster, Store()) as task:
        cluster.version = 49
        cluster.events.put_nowait(told)
        with pytest.raises(VersionsWentBack):
            await task


async def test_a_kind_that_is_no_longer_served_ends_its_watches() -> None:
    cluster = Cluster()
    async with watching(cluster, Store(), "a", "b") as task:
        cluster.events.put_nowait(NotServed("no"))
        with pytest.raises(NotServed):
            await task


@pytest.mark.usefixtures("quick")
async def test_a_lasting_failure_of_a_watch_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    async with watching(cluster, Store()):
        for _ in range(3):
            cluster.events.put_nowait(ClusterError("the API server did not answer"))
        await until(lambda: len(cluster.asked) == 5)
    assert caplog.messages == ["the watch of Pods in all namespaces: the API server did not answer"]


async def test_an_object_that_cannot_be_stored_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    cluster, store = Cluster(), Store()
    async with watching(cluster, store):
        broken: Manifest = {"kind": "Pod", "metadata": {"name": "bad", "resourceVersion": "55"}}
        cluster.events.put_nowait(("ADDED", broken))
        cluster.events.put_nowait(("ADDED", pod("worker-0", 56)))
        await until(lambda: uids(store) == {"worker-0"})
    assert "a bug in dtjob, in taking in Pod bad" in caplog.text
