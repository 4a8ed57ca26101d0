# SPDX-License-Identifier: Apache-2.0
"""Liveness: `/healthz` says whether the process gets on with what it must do again and again.

It means that the event loop turns and that each of these things was *attempted* in time. An API server that is away is
no reason to be restarted, and a standby that only watches the lease is alive.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from aiohttp import web


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
