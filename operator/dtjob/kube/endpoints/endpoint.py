# SPDX-License-Identifier: Apache-2.0
"""Small HTTP endpoints of the operator's process, each on an address of its own: `/healthz` and `/metrics`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Address = tuple[str | None, int]
"""Host (None: every address) and port."""


class EndpointError(Exception):
    """The address of an endpoint cannot be had; the message names the option that gave it."""


def parse_endpoint(text: str) -> Address:
    """`host:port`, `[address]:port` or `:port` (every address) as host and port. Raises ValueError on anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and host[:1] != "["):
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]") or None, int(port)


@asynccontextmanager
async def serving(
    path: str, answer: Callable[[web.Request], web.Response], address: Address, option: str
) -> AsyncIterator[None]:
    """Answer GET of `path` meanwhile. Raises EndpointError, naming `option`, where the address cannot be had."""

    async def handler(request: web.Request) -> web.Response:
        return answer(request)

    app = web.Application()
    app.add_routes([web.get(path, handler)])
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *address).start()
        except OSError as error:
            raise EndpointError(f"{option}: {error.strerror or error}") from error
        yield
    finally:
        await runner.cleanup()
