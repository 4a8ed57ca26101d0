"""Which PodGroups an API server serves, and which of ours there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dtjob.api.scheduling import GangProvider
from dtjob.controller.cluster import ClusterError, JobKey, Refused
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.pod_groups import NOT_AGAIN_SECONDS, PodGroups, Served, kinds_in_use, refuse_dropped
from dtjob.local.here import manifest_of
from dtjob.objects import gangs
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod import pod
from tests.unit.operator.builders import job, task

KUBERNETES, VOLCANO = (gangs.KINDS[one] for one in (GangProvider.KUBERNETES, GangProvider.VOLCANO))
KEY: JobKey = ("default", "digits")
NOT_FOUND = ApiError(404, "NotFound", "the server could not find the requested resource")


class Server:
    """Answers discovery, and LISTs of PodGroups."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.calls: list[str] = []
        self.groups: list[Manifest] = []
        self.version = 100
        self.error: ClusterError | None = None
        self.deleted: list[str] = []
        self.events: asyncio.Queue[tuple[str, Manifest] | ClusterError] = asyncio.Queue()

    async def call(self, method: str, path: str) -> dict[str, Any]:
        self.calls.append(f"{method} {path}")
        if self.error:
            raise self.error
        if path.removeprefix("/apis/") not in self.versions:
            raise NOT_FOUND
        return {"resources": [{"name": "priorityclasses"}, {"name": "podgroups"}, {"name": "podgroups/status"}]}

    async def pages(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], int]]:
        self.calls.append(f"LIST {kind} {namespace}")
        if self.error:
            raise self.error
        yield [one for one in self.groups if one["kind"] == kind], self.version

    async def watch(
        self, kind: str, namespace: str | None, selector: str, version: int
    ) -> AsyncIterator[tuple[str, Manifest]]:
        self.calls.append(f"WATCH {kind} from {version}")
        while True:
            event = await self.events.get()
            if isinstance(event, ClusterError):
                raise event
            yield event

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        self.deleted.append(f"{kind}/{name}/{uid}")


async def test_the_best_version_is_taken_and_asked_for_once():
    server = Server("scheduling.k8s.io/v1alpha2")
    served = Served(server.call)
    assert [await served.version(KUBERNETES) for _ in range(3)] == ["scheduling.k8s.io/v1alpha2"] * 3
    assert server.calls == ["GET /apis/scheduling.k8s.io/v1beta1", "GET /apis/scheduling.k8s.io/v1alpha2"]
    both = Served(Server("scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1").call)
    assert await both.version(KUBERNETES) == "scheduling.k8s.io/v1beta1"


async def test_a_version_without_pod_groups_is_none():
    async def call(method: str, path: str) -> dict[str, Any]:
        return {"resources": [{"name": "elasticquotas"}]}

    with pytest.raises(Refused, match=r"serves no PodGroups of scheduling.x-k8s.io: install scheduler-plugins"):
        await Served(call).version(gangs.KINDS[GangProvider.COSCHEDULING])


async def test_what_is_not_there_is_said_with_the_mend_and_found_once_it_is():
    server, now = Server(), [0.0]
    served = Served(server.call, lambda: now[0])
    for _ in range(5):
        with pytest.raises(Refused, match=r"serves no PodGroups of scheduling.k8s.io: .*GenericWorkload=true"):
            await served.version(KUBERNETES)
    assert len(server.calls) == 2
    server.versions = ("scheduling.k8s.io/v1alpha2",)
    now[0] = NOT_AGAIN_SECONDS
    assert await served.version(KUBERNETES) == "scheduling.k8s.io/v1alpha2"


async def test_an_outage_is_no_answer():
    server = Server("scheduling.volcano.sh/v1beta1")
    server.error = ClusterError("away")
    served = Served(server.call)
    with pytest.raises(ClusterError, match="away"):
        await served.version(VOLCANO)
    server.error = None
    assert await served.version(VOLCANO) == "scheduling.volcano.sh/v1beta1"


async def test_one_that_is_served_no_longer_is_looked_for_again():
    server = Server("scheduling.volcano.sh/v1beta1")
    served = Served(server.call)
    await served.version(VOLCANO)
    assert "install Volcano" in served.words(VOLCANO, NOT_FOUND)
    await served.version(VOLCANO)
    assert len(server.calls) == 2
    gone = ApiError(404, "NotFound", 'namespaces "a" not found')
    assert served.words(VOLCANO, gone) == str(gone)
    assert served.words("Pod", NOT_FOUND) == str(NOT_FOUND)


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


async def test_a_cluster_without_gangs_is_asked_nothing():
    server = Server()
    assert await due(of(server, Store())) == set()
    assert server.calls == []


async def test_what_there_is_comes_in_and_what_has_gone_goes():
    server, store = Server(), Store()
    store.apply(stored())
    server.groups = [group()]
    looking = of(server, store)
    assert await due(looking) == {("default", "digits")}
    assert [one["kind"] for one in store.children(("default", "digits")).objects] == [KUBERNETES]
    assert await due(looking) == set()
    server.groups = []
    assert await due(looking) == {("default", "digits")}
    assert store.children(("default", "digits")).objects == ()
    assert server.calls == [f"LIST {KUBERNETES} None"] * 3


async def test_one_that_was_made_after_the_list_stays():
    server, store = Server(), Store()
    store.apply(stored())
    store.apply(group(version=101))
    assert await due(of(server, store)) == set()
    assert len(store.children(("default", "digits")).objects) == 1


@pytest.mark.parametrize(
    "error", [NotServed("not served"), ApiError(403, "Forbidden", "no")], ids=["away", "forbidden"]
)
async def test_what_may_not_be_listed_is_left_as_it_is(error: ClusterError):
    server, store = Server(), Store()
    store.apply(stored())
    store.apply(group())
    server.error = error
    assert await due(of(server, store, "default")) == set()
    assert len(store.children(("default", "digits")).objects) == 1


async def test_an_api_that_is_away_holds_up_no_resync(caplog: pytest.LogCaptureFixture):
    server, store = Server(), Store()
    store.apply(stored())
    store.apply(group())
    server.error = ApiError(503, "", "away")
    assert await due(of(server, store)) == set()
    assert len(store.children(("default", "digits")).objects) == 1
    assert "not listed: away" in caplog.text


async def test_those_of_the_providers_in_use_are_watched():
    server, store = Server(), Store()
    store.apply(stored())
    pod_groups, _ = of(server, store)
    watching = asyncio.create_task(pod_groups.watch_forever())
    await pod_groups.resync()
    await server.events.put(("ADDED", group(version=101)))
    await until(lambda: store.children(KEY).objects)
    assert server.calls == [f"LIST {KUBERNETES} None", f"WATCH {KUBERNETES} from 100"]
    await server.events.put(("DELETED", group(version=102)))
    await until(lambda: not store.children(KEY).objects)
    await server.events.put(NotServed("no such kind any more"))
    await until(server.events.empty)
    await pod_groups.resync()
    await until(lambda: server.calls.count(f"WATCH {KUBERNETES} from 100") == 2)
    watching.cancel()
    await asyncio.wait([watching])


async def test_what_may_not_be_listed_is_not_watched():
    server, store = Server(), Store()
    store.apply(stored())
    pod_groups, _ = of(server, store)
    server.error = ApiError(403, "Forbidden", "no")
    watching = asyncio.create_task(pod_groups.watch_forever())
    await pod_groups.resync()
    await asyncio.sleep(0)
    watching.cancel()
    await asyncio.wait([watching])
    assert server.calls == [f"LIST {KUBERNETES} None"]


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)


def test_one_that_was_deleted_is_known_no_more():
    store = Store()
    store.apply(stored())
    store.apply(group())
    store.forget_unwatched(("default", "digits"), "Pod", "group-digits")
    assert len(store.children(("default", "digits")).objects) == 1
    store.forget_unwatched(("default", "digits"), KUBERNETES, "group-digits")
    assert store.children(("default", "digits")).objects == ()
    # It may stay until its pods are gone: what is made under its name waits for that.
    assert not store.is_gone("group-digits")
    assert store.apply(group(version=51)) == ("default", "digits")


async def test_a_pod_that_lost_its_gang_goes_and_is_a_refusal():
    asked = job(scheduling={"gang": {"provider": "Kubernetes"}})
    bare = pod(asked, task("worker-0"), 0)
    bare["metadata"]["uid"] = "uid-1"
    gang = gangs.membership(asked, NO_DEFAULTS)
    assert gang is not None
    server, joined = Server(), gangs.joined(bare, gang)
    await refuse_dropped(server, joined, joined)
    await refuse_dropped(server, bare, bare)
    assert server.deleted == []
    with pytest.raises(Refused, match=r"has dropped spec.schedulingGroup .* feature gate GenericWorkload"):
        await refuse_dropped(server, joined, bare)
    assert server.deleted == ["Pod/digits-worker-0-0/uid-1"]
