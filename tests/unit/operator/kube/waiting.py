# SPDX-License-Identifier: Apache-2.0
"""Work that goes on beside a test, and waiting for what it brings about."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def going_on(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """The work goes on meanwhile. At the end it is cancelled and has ended, also if it failed."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(holds: Callable[[], object]) -> None:
    """Return once it holds."""
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.001)
