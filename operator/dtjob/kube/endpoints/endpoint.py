# SPDX-License-Identifier: Apache-2.0
"""Small HTTP endpoints of the operator's process, each on an address of its own: `/healthz` and `/metrics`.

`/healthz` says whether the process gets on with what it must do again and again. The event loop turns, and each of
these things was *attempted* in time. An API server that is away is no reason to be restarted, and a standby that only
watches the lease is alive.
"""

import time
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


class Pulse:
    """What was attempted last, and when the next attempt is due."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}

    def beat(self, what: str, within: float) -> None:
        """Note an attempt at `what`; the next has to come within so many seconds."""
        self._due[what] = self._clock() + within

    def late(self) -> list[str]:
        """What should have been attempted again by now."""
        return sorted(what for what, due in self._due.items() if self._clock() > due)

    def answer(self, _: web.Request) -> web.Response:
        """What `/healthz` says: 200, or 503 with what is late."""
        late = self.late()
        return web.Response(status=503 if late else 200, text=f"late: {', '.join(late)}\n" if late else "ok\n")
