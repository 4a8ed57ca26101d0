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
from tests.unit.operator.kube.answering import access_to

Asked = list[tuple[str, str, dict[str, str], bytes]]


@asynccontextmanager
async def server(asked: Asked, prefix: str = "") -> AsyncIterator[Transport]:
    """A transport to a server that notes what it is asked, and answers 201 with `{"a": 1}`."""

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.method, request.raw_path, dict(request.headers), await request.read()))
        return web.Response(status=201, body=b'{"a": 1}')

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.route("*", "/{path:.*}", answer)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Transport(access_to(f"http://127.0.0.1:{runner.addresses[0][1]}{prefix}"), 5) as transport:
        yield transport
    await runner.cleanup()


@pytest.mark.parametrize("body", [{"b": ["ü", 1.5, None]}, {"b": "\ud800", "c": 2**70}])
async def test_a_body_is_json_and_an_answer_its_status_and_text(body: dict[str, Any]) -> None:
    asked: Asked = []
    async with server(asked) as transport:
        headers = {"Content-Type": "application/json", "User-Agent": "dtjob/1"}
        assert (await transport.request("POST", "/api/v1/pods?c=d", headers, body))[:2] == (201, b'{"a": 1}')
    ((method, path, sent, text),) = asked
    assert (method, path, json.loads(text)) == ("POST", "/api/v1/pods?c=d", body)
    assert (sent["Content-Type"], sent["User-Agent"]) == ("application/json", "dtjob/1")


async def test_a_path_stays_as_it_was_quoted_and_follows_the_servers_own() -> None:
    asked: Asked = []
    path = "/api/v1/pods?continue=a%2Bb%2Fc%3D%3D&labelSelector=dtjob.dev%2Fjob"
    async with server(asked, "/k8s/clusters/c-1") as transport:
        await transport.request("GET", path, {})
    ((method, found, _, text),) = asked
    assert (method, found, text) == ("GET", f"/k8s/clusters/c-1{path}", b"")


@pytest.mark.parametrize(
    ("host", "excepted", "asked_proxy"),
    [
        ("http://api.example.com.invalid", "", True),
        ("http://api.example.com.invalid", "10.96.0.0/12, fd00::/8", True),
        ("http://127.0.0.1:1", "127.0.0.1", False),
        ("http://127.0.0.1:1", ".svc,127.0.0.0/8", False),
        ("http://127.0.0.1:1", "10.96.0.0/12,fd00::/8", True),
    ],
)
async def test_the_environments_proxy_is_used_but_for_what_it_excepts(
    monkeypatch: pytest.MonkeyPatch, host: str, excepted: str, asked_proxy: bool
) -> None:
    """The name resolves nowhere, and nobody listens at the address: only the proxy can answer."""
    asked: Asked = []
    async with server(asked) as proxy:
        monkeypatch.setenv("http_proxy", proxy.access.server)
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

    async def watch(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"\n")
        await over.wait()
        return answer

    async def call(_: web.Request) -> web.Response:
        return web.Response(body=b"{}")

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.get("/watch", watch), web.get("/call", call)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = access_to(f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        async with Transport(server, 5) as transport, AsyncExitStack() as stack:
            async with asyncio.timeout(10):
                for _ in range(120):
                    await stack.enter_async_context(await transport.open("/watch", {}, 330, 90))
                assert (await transport.request("GET", "/call", {}))[:2] == (200, b"{}")
            over.set()
    finally:
        over.set()
        await runner.cleanup()


async def test_the_session_of_another_client_uses_the_same_proxy() -> None:
    """The name resolves nowhere: only the proxy can answer."""
    hosts: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        hosts.append(request.host)
        return web.json_response({})

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.get("/{path:.*}", answer)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = "http://api.example.com.invalid"
    transport = Transport(access_to(server, own_proxy=f"http://127.0.0.1:{runner.addresses[0][1]}"), 5)
    async with transport.session({"User-Agent": "dtjob/1"}) as session, session.get(f"{server}/apis") as found:
        assert await found.json() == {}
    await runner.cleanup()
    assert hosts == ["api.example.com.invalid"]


async def test_a_token_that_is_refused_is_renewed_once() -> None:
    tokens, asked = ["Bearer old", "Bearer new"], list[str | None]()

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization"))
        return web.Response(status=200 if asked[-1] == "Bearer new" else 401, body=b"{}")

    def renewed(refused: str | None) -> bool:
        return tokens.pop(0) == refused

    runner = web.AppRunner(app := web.Application())
    app.add_routes([web.get("/{path:.*}", answer)])
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with Transport(access_to(server, lambda: tokens[0], renewed=renewed), 5) as transport:
        assert (await transport.request("GET", "/a", {}))[0] == 200
        async with await transport.open("/b", {}, 30, 30) as watch:
            assert watch.status == 200
    async with Transport(access_to(server, lambda: "Bearer old"), 5) as transport:
        assert (await transport.request("GET", "/c", {}))[0] == 401
    await runner.cleanup()
    assert asked == ["Bearer old", "Bearer new", "Bearer new", "Bearer old"]


async def test_a_call_without_a_token_is_an_error_of_the_cluster() -> None:
    def away() -> str:
        raise NotReached("the network of the plugin is away")

    async with Transport(access_to("http://127.0.0.1:1", away), 5) as transport:
        with pytest.raises(ClusterError, match="no token to call with: the network of the plugin is away"):
            await transport.request("GET", "/api", {})
