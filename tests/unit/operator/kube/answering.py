# SPDX-License-Identifier: Apache-2.0
"""An API server that is a function of the test's."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from dtjob.client.kubeconfig import Access
from dtjob.kube.calls.client import Kube
from dtjob.kube.calls.transport import Transport

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def always(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """The same answer to each call: a text, or anything else as JSON."""

    async def answer(_: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(text=text, status=status, headers=headers)

    return answer


@asynccontextmanager
async def answering(answer: Answer, **runner: Any) -> AsyncIterator[str]:
    """The URL of an API server that answers so to every call; `runner` are options of aiohttp's AppRunner."""
    running = web.AppRunner(app := web.Application(), **runner)
    app.add_routes([web.route("*", "/{path:.*}", answer)])
    await running.setup()
    try:
        await web.TCPSite(running, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{running.addresses[0][1]}"
    finally:
        await running.cleanup()


@asynccontextmanager
async def asking(answer: Answer, **runner: Any) -> AsyncIterator[Kube]:
    """A client of such an API server."""
    async with answering(answer, **runner) as url, Transport(access_to(url), 5) as transport:
        yield Kube(transport)


def access_to(server: str, authorization: Callable[[], str | None] = lambda: None, **more: Any) -> Access:
    """The way to an API server of a test, without TLS."""
    return Access(server, None, authorization, "default", **more)
