"""What of an API server's lists and watches is taken in on its way to kopf, and what kopf gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from dtjob.kube import streams
from dtjob.kube.streams import bookmark, kind_of, response_class, served_at

KINDS = {served_at("v1", "pods"): "Pod", served_at("training.dtjob.dev/v1beta1", "jobs"): "Job"}
Taken = list[tuple[str, str | None, str]]
Answer = Callable[[web.Request], Any]


def pod(name: str, version: int, text: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "text": text}


def line(happened: str, found: dict[str, Any]) -> bytes:
    return json.dumps({"type": happened, "object": found}).encode() + b"\n"


@asynccontextmanager
async def asked(
    answer: Answer, path: str, taken: Taken, listed: Callable[[], None] = lambda: None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer of a server that is on loopback; objects go to `taken`."""

    def take(kind: str, happened: str | None, found: dict[str, Any]) -> None:
        if found["text"] == "bad":
            raise KeyError("a bug")
        taken.append((kind, happened, found["metadata"]["name"]))

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", answer)])
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with (
            aiohttp.ClientSession(response_class=response_class(KINDS, take, listed)) as session,
            session.get(f"http://127.0.0.1:{runner.addresses[0][1]}{path}") as response,
        ):
            yield response
    finally:
        await runner.cleanup()


def streaming(*pieces: bytes, ends: bool = True, status: int = 200) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.01)  # so that each piece is read by itself
        if not ends:
            await asyncio.sleep(60)
        return response

    return answer


async def read(response: aiohttp.ClientResponse) -> list[dict[str, Any]]:
    """What kopf reads of a stream: its lines."""
    whole = b"".join([data async for data in response.content.iter_chunked(1024 * 1024)])
    return [json.loads(one) for one in whole.splitlines()]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://a/api/v1/pods?watch=true", "Pod"),
        ("https://a/api/v1/namespaces/pods/pods", "Pod"),
        ("https://a/k8s/clusters/c-1/api/v1/namespaces/b/pods", "Pod"),
        ("https://a/apis/training.dtjob.dev/v1beta1/jobs", "Job"),
        ("https://a/apis/training.dtjob.dev/v1beta1/namespaces/c/jobs", "Job"),
        ("https://a/apis/other.dev/v1alpha1/jobs", None),
        ("https://a/api/v1/namespaces/b/pods/c", None),
        ("https://a/api/v1/namespaces", None),
        ("https://a/api/v1/namespaces/pods", None),
        ("https://a/api/v1", None),
        ("https://a/apis", None),
    ],
)
def test_lists_and_watches_are_known_by_their_paths(url: str, kind: str | None) -> None:
    assert kind_of(URL(url), KINDS) == kind


async def test_kopf_gets_a_bookmark_in_place_of_events() -> None:
    taken: Taken = []
    events = (line("ADDED", pod("a", 5)), line("MODIFIED", pod("a", 6)), line("DELETED", pod("a", 7)))
    async with asked(streaming(b"".join(events)), "/api/v1/pods?watch=true", taken) as response:
        assert await read(response) == [json.loads(bookmark("7"))]
    assert taken == [("Pod", "ADDED", "a"), ("Pod", "MODIFIED", "a"), ("Pod", "DELETED", "a")]


@pytest.mark.parametrize("size", [1, 7, 150_000])
async def test_events_are_whole_however_they_come(size: int) -> None:
    taken: Taken = []
    text = "x" * 300_000 if size > 1000 else "x"
    whole = line("ADDED", pod("a", 1, text)) + b"\n" + line("ADDED", pod("b", 2, text))
    pieces = [whole[begin : begin + size] for begin in range(0, len(whole), size)]
    async with asked(streaming(*pieces), "/api/v1/namespaces/c/pods?watch=true", taken) as response:
        versions = [one["object"]["metadata"]["resourceVersion"] for one in await read(response)]
    assert [name for _, _, name in taken] == ["a", "b"]
    assert versions[-1] == "2"


async def test_what_is_no_event_of_an_object_reaches_kopf_in_its_place() -> None:
    taken: Taken = []
    marked = json.loads(bookmark("9"))
    error = {"type": "ERROR", "object": {"code": 410}}
    sent = line("ADDED", pod("a", 5)) + bookmark("9") + b"\n" + line("ADDED", pod("b", 11)) + json.dumps(error).encode()
    async with asked(streaming(sent + b"\n"), "/api/v1/pods?watch=true", taken) as response:
        found = await read(response)
    assert found == [json.loads(bookmark("5")), marked, json.loads(bookmark("11")), error]


async def test_what_is_no_json_is_for_kopf_to_say() -> None:
    async with asked(streaming(b"oops\n[1]\nrest"), "/api/v1/pods?watch=true", []) as response:
        assert b"".join([data async for data in response.content.iter_chunked(1024)]) == b"oops\n[1]\nrest"


async def test_one_object_that_cannot_be_taken_in_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    taken: Taken = []
    sent = line("ADDED", pod("a", 1, "bad")) + line("ADDED", pod("b", 2))
    async with asked(streaming(sent), "/api/v1/pods?watch=true", taken) as response:
        assert await read(response) == [json.loads(bookmark("2"))]
    assert [name for _, _, name in taken] == ["b"]
    assert "a bug in dtjob, in taking in a" in caplog.text


async def test_lists_are_taken_in_and_kopf_gets_them_empty() -> None:
    taken: Taken = []

    async def answer(_: web.Request) -> web.Response:
        metadata = {"resourceVersion": "8", "continue": "more"}
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": [pod("a", 1), pod("b", 2)]})

    async with asked(answer, "/api/v1/pods?limit=2", taken) as response:
        found = await response.json()
    assert found == {"kind": "PodList", "metadata": {"resourceVersion": "8", "continue": "more"}, "items": []}
    assert taken == [("Pod", None, "a"), ("Pod", None, "b")]


@pytest.mark.parametrize(("query", "times"), [("?limit=2", 1), ("?limit=2&continue=more", 0)])
async def test_each_list_is_told_of_once_however_many_pages_it_has(query: str, times: int) -> None:
    heard: list[None] = []

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"items": []})

    async with asked(answer, f"/api/v1/pods{query}", [], lambda: heard.append(None)) as response:
        await response.json()
    assert len(heard) == times


@pytest.mark.parametrize(
    ("path", "status", "says", "missing"),
    [
        ("/apis", 200, {"groups": [{"name": "apps"}]}, True),
        ("/apis", 200, {"groups": [{"name": "apps"}, {"name": "training.dtjob.dev"}]}, False),
        ("/apis/training.dtjob.dev/v1beta1", 200, {"resources": [{"name": "others"}]}, True),
        ("/apis/training.dtjob.dev/v1beta1", 200, {"resources": [{"name": "jobs"}, {"name": "jobs/status"}]}, False),
        ("/apis/training.dtjob.dev/v1beta1", 404, None, True),
        ("/apis/apps/v1", 200, {"resources": []}, False),
        ("/api/v1", 200, {"resources": [{"name": "pods"}]}, False),
        ("/api/v1", 200, {"resources": [{"name": "services"}]}, True),
    ],
)
async def test_kopf_does_not_begin_without_one_of_the_kinds(path: str, status: int, says: Any, missing: bool) -> None:
    async def answer(_: web.Request) -> web.Response:
        page = web.Response(status=404, text="404 page not found")  # as an API server says it, which is no JSON
        return page if says is None else web.json_response(says, status=status)

    async with asked(answer, path, []) as response:
        if missing:
            with pytest.raises(streams.NotServed):
                await response.json()
        else:
            assert await response.json() == says


@pytest.mark.parametrize(
    ("path", "status"), [("/apis/apps/v1", 200), ("/api/v1/services?watch=true", 200), ("/api/v1/pods", 403)]
)
async def test_other_answers_are_as_they_came(path: str, status: int) -> None:
    taken: Taken = []

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"items": [pod("a", 1)]}, status=status)

    async with asked(answer, path, taken) as response:
        assert await response.json() == {"items": [pod("a", 1)]}
    assert taken == []


async def test_a_refused_watch_can_be_read_by_kopf() -> None:
    async with asked(streaming(b'{"message": "no"}', status=410), "/api/v1/pods?watch=true", []) as response:
        assert await response.read() == b'{"message": "no"}'


async def test_a_watch_that_is_closed_ends_for_its_reader() -> None:
    """As kopf does when it is paused, and when its session is closed."""
    async with asked(streaming(b"", ends=False), "/api/v1/pods?watch=true", []) as response:
        reading = asyncio.create_task(read(response))
        await asyncio.sleep(0)
        response.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await asyncio.wait_for(reading, 10)


def test_kinds_are_served_where_kubernetes_has_them() -> None:
    assert served_at("v1", "pods") == "/api/v1/pods"
    assert served_at("networking.k8s.io/v1", "networkpolicies") == "/apis/networking.k8s.io/v1/networkpolicies"
    assert streams.HAPPENED == ("ADDED", "MODIFIED", "DELETED")
