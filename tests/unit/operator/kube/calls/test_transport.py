# SPDX-License-Identifier: Apache-2.0
"""What is sent to an API server, and what of its answer comes back."""

import asyncio
import json
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from dtjob.client.errors import NotReached
from dtjob.controller.cluster import ClusterError
from dtjob.kube.calls.transport import READ_BYTES, Transport, hold_little_for_each_connection
from tests.unit.operator.kube.answering import Answer, access_to, answering

NOWHERE = "http://api.example.com.invalid"
"""A name that resolves nowhere: only a proxy can answer."""


async def _ok(_: web.Request) -> web.StreamResponse:
    return web.json_response({"a": 1}, status=201)


@asynccontextmanager
async def server(asked: list[web.Request], answer: Answer = _ok) -> AsyncIterator[str]:
    """The URL of a server that notes what it is asked."""

    async def noted(request: web.Request) -> web.StreamResponse:
        await request.read()
        asked.append(request)
        return await answer(request)

    async with answering(noted) as url:
        yield url


@pytest.mark.parametrize("body", [{"b": ["ü", 1.5, None]}, {"b": "\ud800", "c": 2**70}])
async def test_a_call_is_sent_as_it_was_quoted_below_the_servers_own_path(body: dict[str, Any]) -> None:
    asked: list[web.Request] = []
    path = "/api/v1/pods?continue=a%2Bb%2Fc%3D%3D&labelSelector=dtjob.dev%2Fjob"
    async with server(asked) as url, Transport(access_to(f"{url}/k8s/clusters/c-1"), 5) as transport:
        status, text, _ = await transport.request("POST", path, {"User-Agent": "dtjob/1"}, body)
    (sent,) = asked
    assert (status, json.loads(text)) == (201, {"a": 1})
    assert (sent.method, sent.raw_path) == ("POST", f"/k8s/clusters/c-1{path}")
    assert (sent.headers["User-Agent"], json.loads(await sent.read())) == ("dtjob/1", body)


@pytest.mark.parametrize(
    ("host", "excepted", "asked_proxy"),
    [(NOWHERE, "10.96.0.0/12, fd00::/8", True), ("http://127.0.0.1:1", ".svc,127.0.0.0/8", False)],
)
async def test_the_environments_proxy_is_used_but_for_what_it_excepts(
    monkeypatch: pytest.MonkeyPatch, host: str, excepted: str, asked_proxy: bool
) -> None:
    asked: list[web.Request] = []
    async with server(asked) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", excepted)
        async with Transport(access_to(host), 5) as transport:
            with suppress(aiohttp.ClientError):
                await transport.request("GET", "/api", {})
    assert bool(asked) == asked_proxy


async def test_a_refused_connection_raises_an_error_that_callers_expect() -> None:
    async with Transport(access_to("http://127.0.0.1:1"), 5) as transport:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await transport.request("GET", "/api", {})


async def test_a_tls_connection_has_a_small_read_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)  # restored at the end
    hold_little_for_each_connection()
    made = sslproto.SSLProtocol(
        asyncio.get_running_loop(), asyncio.Protocol(), ssl.create_default_context(), None, call_connection_made=False
    )
    assert len(made.get_buffer(-1)) == READ_BYTES


async def test_a_hundred_watches_hold_up_no_call() -> None:
    over = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/call":
            return await _ok(request)
        stream = web.StreamResponse()
        await stream.prepare(request)
        await over.wait()
        return stream

    async with server([], answer) as url, Transport(access_to(url), 5) as transport, AsyncExitStack() as stack:
        stack.callback(over.set)
        async with asyncio.timeout(10):
            for _ in range(120):
                await stack.enter_async_context(await transport.open("/watch", {}, 330, 90))
            assert (await transport.request("GET", "/call", {}))[0] == 201


async def test_the_session_of_another_client_uses_the_same_proxy() -> None:
    asked: list[web.Request] = []
    async with server(asked) as proxy:
        transport = Transport(access_to(NOWHERE, own_proxy=proxy), 5)
        async with transport.session({"User-Agent": "dtjob/1"}) as session, session.get(f"{NOWHERE}/apis") as found:
            assert await found.json() == {"a": 1}
    assert [one.host for one in asked] == ["api.example.com.invalid"]


async def test_calls_are_made_for_the_user_whom_the_kubeconfig_impersonates() -> None:
    """Also those of kopf."""
    asked: list[web.Request] = []
    who = (("Impersonate-User", "jane"), ("Impersonate-Group", "one"), ("Impersonate-Group", "two"))
    async with server(asked) as url, Transport(access_to(url, impersonated=who), 5) as transport:
        await transport.request("GET", "/a", {"Accept": "x"})
        async with transport.session(await transport.authorized({})) as session, session.get(f"{url}/b"):
            pass
    for sent in asked:
        assert sent.headers["Impersonate-User"] == "jane"
        assert sent.headers.getall("Impersonate-Group") == ["one", "two"]
    assert len(asked) == 2


async def test_a_token_that_is_refused_is_renewed_once() -> None:
    tokens, asked = ["Bearer old", "Bearer new"], list[web.Request]()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer new" else 401)

    def renewed(refused: str | None) -> bool:
        return tokens.pop(0) == refused

    async with server(asked, answer) as url:
        async with Transport(access_to(url, lambda: tokens[0], renewed=renewed), 5) as transport:
            assert (await transport.request("GET", "/a", {}))[0] == 200
            async with await transport.open("/b", {}, 30, 30) as watch:
                assert watch.status == 200
        async with Transport(access_to(url, lambda: "Bearer old"), 5) as transport:
            assert (await transport.request("GET", "/c", {}))[0] == 401
    sent = [one.headers["Authorization"] for one in asked]
    assert sent == ["Bearer old", "Bearer new", "Bearer new", "Bearer old"]


async def test_a_call_without_a_token_is_an_error_of_the_cluster() -> None:
    def away() -> str:
        raise NotReached("the network of the plugin is away")

    async with Transport(access_to("http://127.0.0.1:1", away), 5) as transport:
        with pytest.raises(ClusterError, match="no token to call with: the network of the plugin is away"):
            await transport.request("GET", "/api", {})
