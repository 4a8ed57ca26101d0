# SPDX-License-Identifier: Apache-2.0
"""Which PodGroups an API server serves, and which of ours there are."""

import asyncio
from typing import Any

import pytest

from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.watching.informer import VersionsWentBack
from dtjob.kube.watching.pod_groups import PodGroups, kinds_in_use
from dtjob.local.here import manifest_of
from dtjob.objects import gangs
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from tests.unit.operator.builders import job
from tests.unit.operator.kube.pod_group_server import KUBERNETES, VOLCANO, Server
from tests.unit.operator.kube.waiting import going_on, until

KEY: JobKey = ("default", "digits")


def stored(provider: str | None = "Kubernetes", name: str = "digits", **spec: Any) -> Manifest:
    gang = {"gang": {"provider": provider} if provider else {}}
    made = manifest_of(job(name=name, uid=f"uid-{name}", scheduling=gang, **spec))
    return {**made, "metadata": {**made["metadata"], "resourceVersion": "5"}}


def group(name: str = "digits", version: int = 50) -> Manifest:
    made = gangs.pod_group(job(name=name, uid=f"uid-{name}", scheduling={"gang": {"provider": "Kubernetes"}}))
    assert made is not None
    metadata = {**made["metadata"], "uid": f"group-{name}", "resourceVersion": str(version)}
    return {**made, "metadata": metadata}


def of(server: Server, store: Store, *namespaces: str) -> tuple[PodGroups, WorkQueue[JobKey]]:
    queue: WorkQueue[JobKey] = WorkQueue()
    return PodGroups(server, store, queue, namespaces, NO_DEFAULTS), queue


async def due(looking: tuple[PodGroups, WorkQueue[JobKey]]) -> set[JobKey]:
    """The jobs for which a resync finds something new."""
    pod_groups, queue = looking
    await pod_groups.resync()
    keys = {await queue.get() for _ in range(len(queue))}
    for key in keys:
        queue.done(key)
    return keys


def test_kinds_are_those_that_some_job_uses():
    store = Store()
    assert kinds_in_use(store, NO_DEFAULTS) == []
    plain = manifest_of(job(name="plain", uid="p"))
    store.apply({**plain, "metadata": {**plain["metadata"], "resourceVersion": "1"}})
    assert kinds_in_use(store, NO_DEFAULTS) == []
    store.apply(stored(None))
    assert kinds_in_use(store, NO_DEFAULTS) == [KUBERNETES]
    store.apply(stored("Volcano", "other"))
    assert kinds_in_use(store, NO_DEFAULTS) == [KUBERNETES, VOLCANO]
    for odd in ([], {"gang": 3}, {"gang": {"provider": "Other"}}):
        broken = stored("Volcano", "broken")
        broken["metadata"]["resourceVersion"] = "9"
        store.apply({**broken, "spec": {**broken["spec"], "scheduling": odd}})
        assert kinds_in_use(store, NO_DEFAULTS) == [KUBERNETES, VOLCANO]
    left = Store()
    left.apply({**plain, "metadata": {**plain["metadata"], "resourceVersion": "1"}})
    left.apply(group("plain"))
    assert kinds_in_use(left, NO_DEFAULTS) == [KUBERNETES], "one that was left behind has to go"


async def test_a_cluster_without_gangs_is_asked_nothing():
    server = Server()
    assert await due(of(server, Store())) == set()
    assert server.calls == []


@pytest.mark.parametrize(
    "error", [NotServed("no kind"), ApiError(403, "Forbidden", "no"), ApiError(503, "", "away")], ids=str
)
async def test_pod_groups_that_cannot_be_listed_stay_in_the_store(error: ClusterError):
    server, store = Server(), Store()
    store.apply(stored())
    store.apply(group())
    server.error = error
    assert await due(of(server, store, "default")) == set()
    assert len(store.children(("default", "digits")).objects) == 1


@pytest.mark.parametrize(
    "error", [NotServed("no such kind any more"), RuntimeError("what nobody thought of")], ids=["away", "a bug"]
)
async def test_pod_groups_of_the_providers_in_use_are_watched(error: Exception):
    server, store = Server(), Store()
    store.apply(stored())
    pod_groups, _ = of(server, store)
    async with going_on(pod_groups.watch_forever()):
        await pod_groups.resync()
        await server.events.put(("ADDED", group(version=101)))
        await until(lambda: store.children(KEY).objects)
        assert server.calls == [f"LIST {KUBERNETES} None", f"WATCH {KUBERNETES} from 100"]
        await server.events.put(("DELETED", group(version=102)))
        await until(lambda: not store.children(KEY).objects)
        await server.events.put(error)
        await until(server.events.empty)
        await pod_groups.resync()
        await until(lambda: server.calls.count(f"WATCH {KUBERNETES} from 100") == 2)


async def test_pod_groups_that_may_not_be_listed_are_not_watched():
    server, store = Server(), Store()
    store.apply(stored())
    pod_groups, _ = of(server, store)
    server.error = ApiError(403, "Forbidden", "no")
    async with going_on(pod_groups.watch_forever()):
        await pod_groups.resync()
        await asyncio.sleep(0)
    assert server.calls == [f"LIST {KUBERNETES} None"]


async def test_a_list_that_is_older_than_an_earlier_one_ends_the_watches():
    server, store = Server(), Store()
    store.apply(stored())
    pod_groups, _ = of(server, store)
    async with going_on(pod_groups.watch_forever()) as watching:
        await pod_groups.resync()
        await server.events.put(VersionsWentBack("the list of PodGroups is of version 59"))
        with pytest.raises(VersionsWentBack):
            await asyncio.wait_for(watching, 10)
