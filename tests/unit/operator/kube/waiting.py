# SPDX-License-Identifier: Apache-2.0
"""Waiting for what a task brings about."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object]) -> None:
    """Return once it holds."""
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.001)
