# SPDX-License-Identifier: Apache-2.0
"""Workloads in the store, while Kueue comes and goes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.calls.client import Kube
from dtjob.kube.watching.workloads import Workloads
from dtjob.objects import kueue
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.workload import Kueue
from tests.unit.operator import builders
from tests.unit.operator.kube.waiting import going_on, until
from tests.unit.operator.queued import queued_job
from tests.unit.operator.simulation.operator import job_manifest

KEY: JobKey = ("default", "digits")


def workload(version: int) -> Manifest:
    made = builders.stored(kueue.workload(queued_job(), NO_DEFAULTS, None))
    made["metadata"] |= {"uid": "w", "resourceVersion": str(version)}
    return made


class Cluster:
    """An API server with these Workloads; `refuses` is what a LIST is answered with."""

    def __init__(self, *found: Manifest, there: bool = True) -> None:
        self.found, self.there, self.version = list(found), there, 50
        self.refuses: ApiError | None = None
        self.events: asyncio.Queue[tuple[str, Manifest] | ClusterError] = asyncio.Queue()
        self.watched: list[int] = []
        self.lists = self.asked = 0

    async def serves(self, version: str, plural: str) -> bool:
        self.asked += 1
        return self.there

    async def pages(self, kind: str, namespace: str | None, selector: str) -> AsyncIterator[tuple[list[Manifest], int]]:
        assert (kind, selector) == ("Workload", "training.dtjob.dev/job-name")
        if self.refuses and namespace != "well":
            raise self.refuses
        self.lists += 1
        yield self.found, self.version

    async def watch(
        self, kind: str, namespace: str | None, selector: str, version: int
    ) -> AsyncIterator[tuple[str, Manifest]]:
        self.watched.append(version)
        while True:
            event = await self.events.get()
            if isinstance(event, ClusterError):
                raise event
            yield event


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtjob.kube.watching.workloads.LOOK_EVERY_SECONDS", 0.01)


def made(cluster: Cluster, *namespaces: str) -> tuple[Workloads, Store, WorkQueue[JobKey]]:
    store: Store = Store()
    store.apply({**job_manifest(queued_job()), "status": {}})
    queue: WorkQueue[JobKey] = WorkQueue()
    return Workloads(cast(Kube, cluster), store, queue, namespaces), store, queue


def known(store: Store) -> list[Any]:
    return [one for one in store.children(KEY).objects if one["kind"] == kueue.KIND]


async def test_without_kueue_no_workloads_are_listed_and_jobs_are_due() -> None:
    workloads, store, queue = made(Cluster(there=False))
    assert store.children(KEY).kueue is Kueue.UNKNOWN
    assert await workloads.resync() is False
    assert store.kueue is Kueue.ABSENT
    assert await queue.get() == KEY


async def test_an_api_server_that_is_away_takes_nothing_back() -> None:
    cluster = Cluster(workload(40))
    workloads, store, _ = made(cluster)
    assert await workloads.resync() is True
    cluster.refuses = ApiError(500, "", "away")
    with pytest.raises(ApiError, match="away"):
        await workloads.resync()
    assert (store.kueue, len(known(store))) == (Kueue.THERE, 1)
    cluster.refuses = ApiError(403, "Forbidden", "no")
    assert await workloads.resync() is False
    assert store.kueue is Kueue.FORBIDDEN


async def test_workloads_are_watched_for_as_long_as_there_is_kueue() -> None:
    cluster = Cluster()
    cluster.there = False
    workloads, store, _ = made(cluster)
    async with going_on(workloads.watch_forever()):
        await until(lambda: store.kueue is Kueue.ABSENT)
        cluster.there = True  # it is installed
        await until(lambda: cluster.watched == [50])
        await cluster.events.put(("ADDED", workload(55)))
        await until(lambda: len(known(store)) == 1)
        await cluster.events.put(("DELETED", workload(56)))
        await until(lambda: not known(store))
        cluster.there = False
        await cluster.events.put(NotServed("the API server knows no Workload"))
        await until(lambda: store.kueue is Kueue.ABSENT)
        cluster.there, cluster.version = True, 70
        await until(lambda: cluster.watched == [50, 70])


@pytest.mark.parametrize("waits", [False, True])
async def test_an_api_server_without_kueue_is_asked_ever_less_often_unless_a_job_waits_for_it(
    waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, an_hour = 0.0, asyncio.Event()

    async def sleep(for_: float) -> None:
        nonlocal seconds
        seconds += for_
        if seconds >= 3600:
            an_hour.set()
            await asyncio.Event().wait()

    monkeypatch.setattr("dtjob.kube.watching.workloads.LOOK_EVERY_SECONDS", 5.0)
    monkeypatch.setattr("dtjob.kube.watching.workloads.asyncio.sleep", sleep)
    cluster = Cluster(there=False)
    store: Store = Store()
    store.apply({**job_manifest(queued_job() if waits else builders.job()), "status": {}})
    watching = Workloads(cast(Kube, cluster), store, WorkQueue(), ()).watch_forever()
    async with going_on(watching), asyncio.timeout(10):
        await an_hour.wait()
    assert cluster.asked == 720 if waits else cluster.asked <= 20


async def test_workloads_that_are_listed_before_all_watches_are_not_listed_again() -> None:
    cluster = Cluster(workload(40))
    workloads, store, _ = made(cluster)
    await workloads.resync()
    async with going_on(workloads.watch_forever()):
        await until(lambda: cluster.watched == [50])
        assert cluster.lists == 1
        cluster.version = 70
        await cluster.events.put(NotServed("the API server knows no Workload"))
        await until(lambda: cluster.watched == [50, 70])
        assert (cluster.lists, store.kueue) == (2, Kueue.THERE)
