"""Resync over namespaces of which one may not be listed, as when it was deleted and our role in it with it."""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import AsyncIterator, Callable
from typing import cast

import pytest

from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube
from dtjob.kube.resync import VersionsWentBack, resync
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

Page = tuple[list[Manifest], int]
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")


class Cluster:
    """Lists a job of each namespace that does not answer with an error."""

    def __init__(self, *namespaces: str, **errors: ApiError) -> None:
        self.namespaces, self.errors = namespaces, errors
        self.fails_at = ""
        """The only kind that fails; empty: each of them."""

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
        if (error := self.errors.get(namespace or "everywhere")) and self.fails_at in ("", kind):
            raise error
        yield [job_in(namespace)] if kind == KIND and namespace in self.namespaces else [], 50


def job_in(namespace: str | None) -> Manifest:
    made = job_manifest(builders.job(uid=f"uid-{namespace}"))
    made["metadata"] |= {"namespace": namespace, "resourceVersion": "10"}
    return made


async def test_a_namespace_that_is_refused_spoils_nothing_for_the_others():
    store = Store()
    await resync(cast(Kube, Cluster("a", "b")), store, ["a", "b"], set())
    changed: set[JobKey] = set()
    refused = await resync(cast(Kube, Cluster(b=FORBIDDEN)), store, ["a", "b"], changed)
    assert refused == {"b": "pods is forbidden"}
    assert changed == {("a", "digits")}
    assert store.job_keys() == [("b", "digits")]  # nobody said that it is gone


async def test_a_namespace_that_answers_again_is_taken_in():
    store = Store()
    await resync(cast(Kube, Cluster("a", b=FORBIDDEN)), store, ["a", "b"], set())
    assert store.job_keys() == [("a", "digits")]
    changed: set[JobKey] = set()
    assert await resync(cast(Kube, Cluster("a", "b")), store, ["a", "b"], changed) == {}
    assert changed == {("b", "digits")}


async def test_what_was_found_before_a_failure_is_told_of_all_the_same():
    """The next resync finds it in the store, and no difference."""
    store, changed = Store(), set[JobKey]()
    broken = Cluster("a", b=ApiError(500, "InternalError", "no leader"))
    broken.fails_at = KIND
    with pytest.raises(ApiError):
        await resync(cast(Kube, broken), store, ["a", "b"], changed)
    assert changed == {("a", "digits")}


async def test_an_etcd_that_was_restored_is_seen():
    """Whatever is told for long is older than what is known, and would be taken for known."""

    class Restored(Cluster):
        version = 50

        async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
            async for page, _ in super().pages(kind, namespace, selector):
                yield page, self.version

    store, cluster = Store(), Restored("a")
    for version in (50, 50, 60):
        cluster.version = version
        await resync(cast(Kube, cluster), store, ["a"], set())
    cluster.version = 59
    with pytest.raises(VersionsWentBack, match="of version 59, and an earlier one was of 60"):
        await resync(cast(Kube, cluster), store, ["a"], set())


async def test_a_failure_waits_for_what_other_namespaces_still_tell():
    """Who asked for the resync looks at what has changed as soon as that fails, and never again."""

    class Slow(Cluster):
        async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
            async for page in super().pages(kind, namespace, selector):
                await asyncio.sleep(0.01)
                yield page

    store, changed = Store(), set[JobKey]()
    broken = Slow("a", b=ApiError(500, "InternalError", "no leader"))
    broken.fails_at = KIND
    with pytest.raises(ApiError):
        await resync(cast(Kube, broken), store, ["a", "b"], changed)
    told = set(changed)
    await asyncio.sleep(0.05)
    assert store.job_keys() == sorted(told)


@pytest.mark.parametrize(
    ("cluster", "namespaces"),
    [
        (Cluster(everywhere=FORBIDDEN), []),
        (Cluster(a=FORBIDDEN, b=FORBIDDEN), ["a", "b"]),
        (Cluster("a", b=ApiError(500, "InternalError", "no leader")), ["a", "b"]),
    ],
    ids=["whole cluster", "all of them", "another error"],
)
async def test_what_leaves_nothing_or_may_pass_is_raised(cluster: Cluster, namespaces: list[str]):
    with pytest.raises(ApiError):
        await resync(cast(Kube, cluster), Store(), namespaces, set())


class Paged:
    """Lists pods page by page; `between` happens after each page was given."""

    def __init__(self, *pages: list[Manifest], between: Callable[[], object]) -> None:
        self._pages, self._between = pages, between

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
        for page in self._pages if kind == "Pod" else [[]]:
            yield page, 50
            self._between()


def pod(name: str, version: int, **metadata: str) -> Manifest:
    made = builders.pod(builders.job(), name)
    made["metadata"] |= {"uid": name, "resourceVersion": str(version), **metadata}
    return made


async def test_what_the_watch_tells_between_two_pages_stands():
    store = Store()
    early, late = pod("worker-0", 10), pod("worker-1", 20)
    gone, changed, new = (
        pod("worker-0", 55),
        pod("worker-1", 60, deletionTimestamp="2026-11-21T10:00:00Z"),
        pod("chief-0", 58),
    )

    def meanwhile() -> None:
        store.remove(gone)
        store.apply(changed)
        store.apply(new)

    await resync(cast(Kube, Paged([early], [late], between=meanwhile)), store, (), set())
    found = {
        one["metadata"]["uid"]: one["metadata"]["resourceVersion"]
        for one in store.children(("default", "digits")).objects
    }
    assert found == {"worker-1": "60", "chief-0": "58"}


async def test_only_one_page_is_in_memory():
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

    await resync(cast(Kube, Endless()), store, (), set())
    assert len(store.children(("default", "digits")).objects) == 50
    assert len(alive) == 50


class Overtaken(Cluster):
    """Has a list of each time that it is asked, and answers the first one last."""

    def __init__(self) -> None:
        super().__init__()
        self.versions, self.answers = itertools.count(50), asyncio.Event()

    async def pages(self, kind: str, namespace: str | None, selector: str = "") -> AsyncIterator[Page]:
        version = next(self.versions)
        if version == 50:
            await self.answers.wait()
        yield [], version


async def test_of_two_at_once_the_one_that_is_answered_last_is_of_no_past():
    """As after an outage, with calls that hang at several API servers."""
    cluster, store = Overtaken(), Store()
    first = asyncio.create_task(resync(cast(Kube, cluster), store, [], set()))
    await asyncio.sleep(0)
    await resync(cast(Kube, cluster), store, [], set())
    before = dict(store.listed_at)
    cluster.answers.set()
    await first
    assert all(store.listed_at[kind] >= version for kind, version in before.items())
