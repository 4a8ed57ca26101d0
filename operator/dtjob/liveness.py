"""Liveness: `/healthz` says whether the process gets on with what it must do again and again.

It means that the event loop turns and that each of these things was *attempted* in time. An API server that is away is
no reason to be restarted, and a standby that only watches the lease is alive.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web


class EndpointError(Exception):
    """The address for `/healthz` cannot be had."""


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


def parse_endpoint(text: str) -> tuple[str | None, int]:
    """`host:port`, `[address]:port` or `:port` (every address) as host and port. Raises ValueError on anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and host[:1] != "["):
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]") or None, int(port)


@asynccontextmanager
async def serving(pulse: Pulse, host: str | None, port: int) -> AsyncIterator[None]:
    """Answer `/healthz` meanwhile: 200, or 503 with what is late. Raises EndpointError where the port cannot be had."""

    async def healthz(_: web.Request) -> web.Response:
        late = pulse.late()
        return web.Response(status=503 if late else 200, text=f"late: {', '.join(late)}\n" if late else "ok\n")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz)])
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise EndpointError(error.strerror or str(error)) from error
        yield
    finally:
        await runner.cleanup()
