# SPDX-License-Identifier: Apache-2.0
"""What of the client needs no API server; the rest is tests/cluster's."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from dtjob import __version__
from dtjob.controller.cluster import ClusterError, Gone, Stale
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.calls.client import Kube
from dtjob.kube.calls.transport import Transport
from tests.unit.operator.kube.answering import access_to, always, asking


async def test_kopf_calls_with_our_token_and_name():
    credentials, session = await Kube(Transport(access_to("http://127.0.0.1:1", lambda: "Bearer a"), 5)).session()
    assert credentials == session.headers["Authorization"] == "Bearer a"
    assert session.headers["User-Agent"].startswith(f"dtjob/{__version__} (")
    await session.close()


@pytest.mark.parametrize("text", ["", "<html>log in</html>", "[1]"])
async def test_an_answer_that_is_no_api_servers_is_a_call_that_failed(text: str):
    """As of a proxy that wants to be logged in to: 200, and a page."""
    async with asking(always(text)) as kube:
        with pytest.raises(ClusterError, match="no API server"):
            await kube.get("Pod", "default", "digits-chief-0-0")


@pytest.mark.parametrize(
    ("message", "raised"),
    [
        ('distributedtrainingjobs.training.dtjob.dev "digits" not found', Gone),
        ("the server could not find the requested resource", Stale),
    ],
    ids=["the job was deleted", "no jobs are served"],
)
async def test_a_job_is_gone_only_if_the_api_server_names_it(message: str, raised: type[Stale]) -> None:
    """An API server that does not serve jobs yet says 404 too. A job that counts as gone would be ignored then."""
    async with asking(always({"reason": "NotFound", "message": message}, 404)) as kube:
        with pytest.raises(Stale) as error:
            await kube.write_status({"metadata": {"namespace": "default", "name": "digits"}}, {})
    assert error.type is raised


@pytest.mark.parametrize(("plural", "served"), [("podgroups", True), ("elasticquotas", False)])
async def test_objects_are_served_if_their_version_of_the_api_lists_them(plural: str, served: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path != "/apis/scheduling.k8s.io/v1beta1":
            return web.json_response({"reason": "NotFound"}, status=404)
        return web.json_response({"resources": [{"name": "podgroups/status"}, {"name": "podgroups"}]})

    async with asking(answer) as kube:
        assert await kube.serves("scheduling.k8s.io/v1beta1", plural) is served
        assert await kube.serves("scheduling.x-k8s.io/v1alpha1", plural) is False


@pytest.mark.parametrize(
    ("answered", "ends"),
    [
        ({"kind": "Pod", "metadata": {"name": "digits-chief-0-0", "resourceVersion": "7"}}, True),
        ({"kind": "Pod", "metadata": {"name": "digits-chief-0-0"}}, False),
        ({"kind": "Status", "metadata": {}, "status": "Success"}, False),
    ],
    ids=["it ends", "it went during the call", "it is gone"],
)
async def test_a_deleted_pod_is_returned_only_while_it_is_stored(answered: dict[str, Any], ends: bool) -> None:
    async with asking(always(answered)) as kube:
        stored = await kube.delete("Pod", "default", "digits-chief-0-0", "uid")
    assert (stored is not None) is ends


@pytest.mark.parametrize(
    ("code", "reason", "message", "gone"),
    [
        (404, "NotFound", 'pods "digits-chief-0-0" not found', True),
        (409, "Conflict", "Precondition failed: UID in precondition: uid, UID in object meta: another", True),
        (
            409,
            "Conflict",
            'Operation cannot be fulfilled on pods "digits-chief-0-0": the object has been modified',
            False,
        ),
        (409, "", 'admission webhook "pods.example.com" denied the request: try again', False),
    ],
    ids=["it is gone", "another has its name", "it changed", "a webhook's conflict"],
)
@pytest.mark.parametrize("call", ["delete", "stop_serving"])
async def test_only_a_missing_pod_or_another_uid_counts_as_gone(
    call: str, code: int, reason: str, message: str, gone: bool
) -> None:
    async with asking(always({"reason": reason, "message": message}, code)) as kube:
        if call == "delete":
            asked = kube.delete("Pod", "default", "digits-chief-0-0", "uid")
        else:
            asked = kube.stop_serving("default", "digits-chief-0-0", "uid")
        if gone:
            assert await asked is None
        else:
            with pytest.raises(ApiError, match=message[:20]):
                await asked


@pytest.mark.parametrize(
    ("said", "seconds"),
    [({"Retry-After": "7"}, 7), ({"Retry-After": "3600"}, 60), ({"Retry-After": "Mon"}, 0), ({}, 0)],
)
async def test_an_error_says_when_to_ask_again(said: dict[str, str], seconds: float) -> None:
    """As API Priority and Fairness does, in plain text, where an API server has too much to do."""
    async with asking(always("Too many requests, please try again later.", 429, said)) as kube:
        with pytest.raises(ClusterError, match="Too many requests") as caught:
            await kube.get("Pod", "default", "digits-chief-0-0")
        with pytest.raises(ClusterError, match="Too many requests") as of_watch:
            await anext(kube.watch("Pod", None, "", 1))
    assert (caught.value.retry_after, of_watch.value.retry_after) == (seconds, seconds)


@pytest.mark.parametrize("kind", ["LocalQueue", "ClusterQueue"])
async def test_a_queue_that_may_not_be_seen_is_as_if_it_were_not_there(kind: str) -> None:
    """As with the rights of the release before: its jobs come near each other by affinity, as they did."""
    async with asking(always({"reason": "Forbidden", "message": f"{kind} is forbidden"}, 403)) as kube:
        assert await kube.get(kind, "default", "team-a") is None
        with pytest.raises(ClusterError, match="forbidden"):
            await kube.get("ResourceFlavor", None, "spot")


@asynccontextmanager
async def watched_from(*pieces: bytes, ends: bool = True, status: int = 200) -> AsyncIterator[Kube]:
    """A connection to an API server that answers with these, and is silent then or ends the answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.001)  # so that each piece is read by itself
        if not ends:
            await asyncio.sleep(60)
        return response

    async with asking(answer, handler_cancellation=True, shutdown_timeout=0) as kube:
        yield kube


def event(happened: str, version: int, text: str = "") -> bytes:
    found = {"metadata": {"name": "a", "resourceVersion": str(version)}, "text": text}
    return json.dumps({"type": happened, "object": found}).encode() + b"\n"


async def watched(kube: Kube) -> list[tuple[str, str]]:
    """What a watch of pods tells: what happened, and up to which version."""
    found = [one async for one in kube.watch("Pod", None, "", 5)]
    assert {(pod["apiVersion"], pod["kind"]) for _, pod in found} <= {("v1", "Pod")}
    return [(happened, pod["metadata"]["resourceVersion"]) for happened, pod in found]


@pytest.mark.parametrize("size", [1, 7, 150_000])
async def test_events_are_whole_however_they_come(size: int) -> None:
    text = "x" * 300_000 if size > 1000 else "x"
    whole = event("ADDED", 6, text) + b"\n" + event("DELETED", 7, text) + event("BOOKMARK", 9)
    async with watched_from(*(whole[begin : begin + size] for begin in range(0, len(whole), size))) as kube:
        assert await watched(kube) == [("ADDED", "6"), ("DELETED", "7"), ("BOOKMARK", "9")]


async def test_a_watch_over_a_connection_that_is_half_open_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other end is gone without a word: there are not even bookmarks any more."""
    monkeypatch.setattr("dtjob.kube.calls.client.SILENT_SECONDS", 0.2)
    async with watched_from(event("ADDED", 55), ends=False) as kube, asyncio.timeout(20):
        watch = kube.watch("Pod", None, "", 50)
        assert (await anext(watch))[0] == "ADDED"
        with pytest.raises(ClusterError, match="broke"):
            await anext(watch)


@pytest.mark.parametrize("line", [b"<html>", b"[1]"])
async def test_a_line_that_is_no_event_breaks_the_watch(line: bytes) -> None:
    async with watched_from(line + b"\n") as kube:
        with pytest.raises(ClusterError, match="no API server"):
            await watched(kube)


@pytest.mark.parametrize("status", [200, 410], ids=["in the stream", "instead of it"])
async def test_a_version_that_is_too_old_is_an_error_of_that_code(status: int) -> None:
    said = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    line = said if status == 410 else {"type": "ERROR", "object": said}
    async with watched_from(json.dumps(line).encode() + b"\n", status=status) as kube:
        with pytest.raises(ApiError, match="too old") as caught:
            await watched(kube)
    assert caught.value.code == 410


async def test_a_watch_of_a_kind_that_is_not_served_says_so() -> None:
    async with watched_from(b"404 page not found", status=404) as kube:
        with pytest.raises(NotServed):
            await watched(kube)
