# SPDX-License-Identifier: Apache-2.0
"""An API server that is a function of the test's."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from kubernetes.aio import client

from dtjob.kube.calls.client import Kube
from dtjob.kube.calls.transport import Transport


@asynccontextmanager
async def asking(answer: Callable[[web.Request], Awaitable[web.StreamResponse]], **runner: Any) -> AsyncIterator[Kube]:
    """A client of an API server that answers so to every call; `runner` are options of aiohttp's AppRunner."""
    running = web.AppRunner(app := web.Application(), **runner)
    app.add_routes([web.route("*", "/{path:.*}", answer)])
    await running.setup()
    await web.TCPSite(running, "127.0.0.1", 0).start()
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{running.addresses[0][1]}"
    async with client.ApiClient(configuration) as api_client, Transport(api_client, 5) as transport:
        yield Kube(api_client, transport)
    await running.cleanup()
