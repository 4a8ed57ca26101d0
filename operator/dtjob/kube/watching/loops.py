# SPDX-License-Identifier: Apache-2.0
"""Loops of the process: each is started again when it ends, so that one broken object does not stop the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dtjob.controller.pace.backoff import Backoff
from dtjob.kube.watching.informer import VersionsWentBack

logger = logging.getLogger(__name__)

PAUSE = Backoff(1.0, 30.0)
WELL_AFTER_SECONDS = 60.0
"""A loop that ran for so long is well again: its next pause is the first one."""


async def keep_running(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run until cancelled; what raises, ends, or is cancelled by somebody else begins anew after a pause. Raises
    VersionsWentBack: only a new process can go on."""
    loop, failures = asyncio.get_running_loop(), 0
    while True:
        began = loop.time()
        task = asyncio.ensure_future(run())
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if isinstance(error, VersionsWentBack):
            raise error
        failures = 1 if loop.time() - began > WELL_AFTER_SECONDS else failures + 1
        pause = PAUSE.after(failures)
        logger.error("%s ended, a bug in dtjob; it begins again in %.0f s", name, pause, exc_info=error)
        await asyncio.sleep(pause)
