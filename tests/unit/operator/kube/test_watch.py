"""kopf as an event source: what its events do to store and queue, and what it may not do to objects."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import kopf
import pytest
from aiohttp import web

from dtjob import __version__
from dtjob.api.job import API_VERSION, KIND
from dtjob.controller.cluster import JobKey
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube import watch, watching
from dtjob.kube.client import Credentials
from dtjob.objects import labels, shared
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

KEY = ("default", "digits")
CREDENTIALS = Credentials("https://10.0.0.1", None, None, False, "secret", None, None)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def queue() -> WorkQueue[JobKey]:
    return WorkQueue()


async def credentials() -> Credentials:
    return CREDENTIALS


async def due(queue: WorkQueue[JobKey]) -> list[JobKey]:
    keys = [await queue.get() for _ in range(len(queue))]
    for key in keys:
        queue.done(key)
    return keys


async def test_only_what_changes_something_makes_a_job_due(
    store: Store, queue: WorkQueue[JobKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "gather_seconds", lambda children: 0.0)
    monkeypatch.setattr(watch, "SETTLE_SECONDS", 0.0)
    pod = builders.pod(builders.job(), "chief-0")
    for type_, wanted in ((None, [KEY]), ("MODIFIED", []), ("DELETED", [KEY]), ("DELETED", []), ("ADDED", [])):
        watch.take_in(store, queue, type_, pod)
        assert await due(queue) == wanted, type_
    assert store.children(KEY).objects == ()


async def test_a_failed_pod_makes_its_job_due_at_once_and_what_comes_together_is_gathered(
    store: Store, queue: WorkQueue[JobKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add(KEY)
    assert await due(queue) == [KEY]
    pod = builders.pod(builders.job(), "chief-0")
    monkeypatch.setattr(watch, "gather_seconds", lambda children: 0.0)
    watch.take_in(store, queue, "ADDED", pod)
    assert await due(queue) == []
    metadata = {**pod["metadata"], "resourceVersion": str(int(pod["metadata"]["resourceVersion"]) + 1)}
    failed = {**pod, "metadata": metadata, "status": {**builders.ended(1, builders.NOW), "phase": "Failed"}}
    watch.take_in(store, queue, "MODIFIED", failed)
    assert await due(queue) == [KEY]


async def test_handlers_give_objects_the_kind_that_a_watch_leaves_out(store: Store, queue: WorkQueue[JobKey]) -> None:
    made = watch.registry(store, queue, credentials)
    service, _, policy = (builders.stored(one) for one in shared.shared_objects(builders.job()))
    manifests = (job_manifest(builders.job()), builders.pod(builders.job(), "chief-0"), service, policy)
    for handler, manifest in zip([one.fn for one in made._watching.get_all_handlers()], manifests, strict=True):
        body = {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind")}
        await handler(type="ADDED", event={"type": "ADDED", "object": body}, logger=None)
    job = store.job(KEY)
    assert job is not None
    assert (job["apiVersion"], job["kind"]) == (API_VERSION, KIND)
    children = [(one["apiVersion"], one["kind"]) for one in store.children(KEY).objects]
    assert children == [("v1", "Pod"), ("v1", "Service"), ("networking.k8s.io/v1", "NetworkPolicy")]
    assert await due(queue) == [KEY]


async def test_kopf_logs_in_as_our_own_connection_does(store: Store, queue: WorkQueue[JobKey]) -> None:
    (login,) = watch.registry(store, queue, credentials)._activities.get_all_handlers()
    connection = await login.fn()
    assert isinstance(connection, kopf.AiohttpSession)
    assert connection.server == "https://10.0.0.1"
    async with connection.aiohttp_session as session:
        assert session.headers["Authorization"] == "Bearer secret"
        assert session.headers["User-Agent"].startswith(f"dtjob/{__version__} (")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/pods", "Pod"),
        ("/api/v1/namespaces/default/services", "Service"),
        ("/apis/networking.k8s.io/v1/networkpolicies", "NetworkPolicy"),
        ("/apis/training.dtjob.dev/v1beta1/distributedtrainingjobs", KIND),
    ],
)
async def test_what_kopf_lists_is_taken_in_on_its_way(path: str, kind: str) -> None:
    """An API server that answers each list with one object."""
    taken: list[tuple[str, str | None, Any]] = []

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"items": [{"metadata": {"name": "a"}}]})

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.get("/{path:.*}", answer)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    known = replace(CREDENTIALS, server=f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with (
        watch.session(known, lambda *told: taken.append(told)) as session,
        session.get(known.server + path) as found,
    ):
        assert await found.json() == {"items": []}
    await runner.cleanup()
    assert taken == [(kind, None, {"metadata": {"name": "a"}})]


@pytest.mark.usefixtures("tasks_end_unheard")
@pytest.mark.parametrize("renewed", [False, True])
async def test_a_token_that_is_refused_is_tried_again_only_once_there_is_another(
    store: Store, queue: WorkQueue[JobKey], renewed: bool
) -> None:
    """An API server that takes one token only. Where no other is to be had the watches end: they are begun again after
    a pause, and the API server is not asked without one."""
    asked: list[tuple[str, bool]] = []
    listing = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        right = request.headers["Authorization"] == "Bearer new"
        asked.append((request.path, right))
        if right and len([path for path, right in asked if right]) > 1:
            listing.set()
        return web.json_response({"versions": []}, status=200 if right else 401)

    async def known() -> Credentials:
        token = "new" if renewed and asked else "old"
        return replace(CREDENTIALS, server=f"http://127.0.0.1:{runner.addresses[0][1]}", token=token)

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.get("/{path:.*}", answer)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    spawn = watching.kopf_watches(watch.registry(store, queue, known), watch.settings, lambda: None)
    tasks = await spawn([])
    waiting = asyncio.create_task(listing.wait())
    done, _ = await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=20)
    await watching._end([*tasks, waiting])
    await runner.cleanup()
    assert (waiting in done) == renewed
    assert done, f"asked {len(asked)} times with a token that was refused"
    assert len([path for path, right in asked if not right]) < 10


async def test_kopf_reaches_the_api_server_through_the_connections_proxy() -> None:
    """The name resolves nowhere: only the proxy can answer."""
    hosts: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        hosts.append(request.host)
        return web.json_response({"items": []})

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.get("/{path:.*}", answer)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = "http://api.example.com.invalid"
    known = replace(CREDENTIALS, server=server, proxy=f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with watch.session(known, lambda *_: None) as session, session.get(f"{server}/api/v1/pods") as found:
        assert await found.json() == {"items": []}
    await runner.cleanup()
    assert hosts == ["api.example.com.invalid"]


def test_nothing_is_written_to_objects_and_only_our_children_are_watched() -> None:
    chosen = watch.settings()
    body, patch = kopf.Body(_pod()), kopf.Patch()
    storages: Any = (chosen.persistence.diffbase_storage, chosen.persistence.progress_storage)
    diffbase, progress = storages
    diffbase.store(body=body, patch=patch, essence={"spec": {}})
    progress.store(key="a", record={"started": "now"}, body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    progress.purge(key="a", body=body, patch=patch)
    assert dict(patch) == {}
    assert (diffbase.fetch(body=body), progress.fetch(key="a", body=body)) == (None, None)
    assert (chosen.scanning.disabled, chosen.posting.enabled) == (True, False)
    for plural in ("pods", "services", "networkpolicies"):
        assert chosen.watching.label_selectors[plural] == labels.JOB_NAME
    assert chosen.process.ultimate_exiting_timeout is None  # else it kills the process 10 min after watches ended
    assert 0 < (chosen.watching.chunk_size or 0) <= 200  # else it lists everything at once


def test_kopf_waits_for_nothing_longer_than_seconds() -> None:
    """Its own defaults are a minute after a login that failed, and up to 21 s after an answer that did."""
    chosen = watch.settings()
    assert chosen.execution.default_backoff <= 2
    assert isinstance(chosen.networking.error_backoffs, tuple)
    assert max(chosen.networking.error_backoffs) <= 5
    assert (chosen.networking.connect_timeout or 60) <= 5


def test_nothing_of_an_object_is_copied_to_be_compared() -> None:
    """kopf's own `build` copies the whole object at every event, 0.3 to 0.8 ms for a pod."""
    assert watch.settings().persistence.diffbase_storage.build(body=kopf.Body(_pod())) == {}


def _pod() -> Manifest:
    return builders.pod(builders.job(), "chief-0")
