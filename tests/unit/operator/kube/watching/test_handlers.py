# SPDX-License-Identifier: Apache-2.0
"""kopf as a source of events: what it tells of jobs, how it logs in, and what it may not do to objects."""

import asyncio
import functools
import json
from typing import Any

import aiohttp
import kopf
import pytest
from aiohttp import web

from dtjob.api.job import API_VERSION, GROUP, KIND, PLURAL, VERSION
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.watching import job_watches
from dtjob.kube.watching.handlers import choose, registry
from dtjob.kube.watching.informer import take_in
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.kube.answering import answering
from tests.unit.operator.simulation.operator import job_manifest

KEY = ("default", "digits")


class Connection:
    """One with a token, to the API server at this URL."""

    def __init__(self, server: str = "https://10.0.0.1") -> None:
        self.server, self.token, self.sessions = server, "old", list[aiohttp.ClientSession]()

    async def session(self) -> tuple[str, aiohttp.ClientSession]:
        authorization = f"Bearer {self.token}"
        self.sessions.append(aiohttp.ClientSession(headers={"Authorization": authorization}))
        return authorization, self.sessions[-1]


def take_nothing(happened: str | None, job: Manifest) -> None:
    """For who looks at nothing."""


async def tell(made: kopf.OperatorRegistry, happened: str | None, manifest: Manifest) -> None:
    """What kopf does with an event of a job."""
    (handler,) = made._watching.get_all_handlers()
    await handler.fn(event={"type": happened, "object": manifest})


def activity(made: kopf.OperatorRegistry, name: str) -> Any:
    return next(one.fn for one in made._activities.get_all_handlers() if one.activity.value == name)


async def test_jobs_are_taken_in_with_the_kind_that_a_list_may_leave_out() -> None:
    store, queue = Store(), WorkQueue[tuple[str, str]]()
    made = registry(Connection(), functools.partial(take_in, store, queue))
    manifest = job_manifest(builders.job())
    manifest["metadata"]["resourceVersion"] = "10"
    await tell(made, None, {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind")})
    job = store.job(KEY)
    assert job is not None
    assert (job["apiVersion"], job["kind"]) == (API_VERSION, KIND)
    assert await queue.get() == KEY
    await tell(made, "DELETED", manifest)
    assert store.job(KEY) is None


async def test_kopf_logs_in_as_our_own_connection_does_and_out_again() -> None:
    connection = Connection()
    made = registry(connection, take_nothing)
    first = await activity(made, "authentication")()
    assert isinstance(first, kopf.AiohttpSession)
    assert (first.server, first.aiohttp_session) == (connection.server, connection.sessions[0])
    second = await activity(made, "authentication")()
    assert second == first  # what was refused is not tried again
    connection.token = "new"
    assert await activity(made, "authentication")() != first
    await activity(made, "cleanup")()
    assert [session.closed for session in connection.sessions] == [True, True, True]


@pytest.mark.usefixtures("tasks_end_unheard")
@pytest.mark.parametrize("renewed", [False, True])
async def test_a_token_that_is_refused_is_tried_again_only_once_there_is_another(renewed: bool) -> None:
    """An API server that takes one token only. If there is no other the watches end: they are begun again after a
    pause, and the API server is not asked without one."""
    asked: list[bool] = []
    listing = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        right = request.headers["Authorization"] == "Bearer new"
        asked.append(right)
        connection.token = "new" if renewed else "old"
        if asked.count(True) > 1:
            listing.set()
        return web.json_response({"versions": []}, status=200 if right else 401)

    async with answering(answer) as server:
        connection = Connection(server)
        spawn = job_watches.kopf_watches(registry(connection, take_nothing), lambda: None)
        tasks = await spawn([])
        waiting = asyncio.create_task(listing.wait())
        done, _ = await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=20)
        await job_watches._end([*tasks, waiting])
    assert (waiting in done) == renewed
    assert done, f"asked {len(asked)} times with a token that was refused"
    assert asked.count(False) < 10


@pytest.mark.usefixtures("tasks_end_unheard")
async def test_kopf_brings_the_jobs_that_there_are_and_what_becomes_of_them() -> None:
    """The whole of kopf, of which this is all that dtjob uses."""
    version = {"version": VERSION}
    answers: dict[str, Any] = {
        "/api": {"versions": ["v1"]},
        "/api/v1": {"resources": [resource("Namespace", "namespaces")]},
        "/apis": {"groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]},
        f"/apis/{API_VERSION}": {"resources": [resource(KIND, PLURAL)]},
    }
    first, second = ({"metadata": {"name": name, "namespace": "default", "uid": name}} for name in ("a", "b"))
    told: list[tuple[str | None, str]] = []
    all_told = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path in answers:
            return web.json_response(answers[request.path])
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": [first]})
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(json.dumps({"type": "ADDED", "object": second}).encode() + b"\n")
        await all_told.wait()
        return response

    def take(happened: str | None, job: Manifest) -> None:
        told.append((happened, job["metadata"]["name"]))
        if len(told) == 2:
            all_told.set()

    async with answering(answer) as server:
        tasks = await job_watches.kopf_watches(registry(Connection(server), take), lambda: None)([])
        await asyncio.wait([waiting := asyncio.create_task(all_told.wait())], timeout=20)
        await job_watches._end([*tasks, waiting])
    assert told == [(None, "a"), ("ADDED", "b")]


def resource(kind: str, plural: str) -> dict[str, Any]:
    """As an API server names it."""
    return {"name": plural, "singularName": "", "kind": kind, "namespaced": True, "verbs": ["list", "watch"]}


def test_nothing_is_written_to_jobs_and_nothing_of_them_copied() -> None:
    choose(chosen := kopf.OperatorSettings())
    body, patch = kopf.Body(job_manifest(builders.job())), kopf.Patch()
    diffbase = chosen.persistence.diffbase_storage
    diffbase.store(body=body, patch=patch, essence=kopf.BodyEssence(spec={}))
    assert dict(patch) == {}
    assert (diffbase.build(body=body), diffbase.fetch(body=body)) == ({}, None)
    assert (chosen.scanning.disabled, chosen.posting.enabled) == (True, False)
    assert chosen.process.ultimate_exiting_timeout is None  # else it kills the process 10 min after watches ended
    assert 0 < (chosen.watching.chunk_size or 0) <= 200  # else it lists everything at once
