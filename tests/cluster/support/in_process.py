# SPDX-License-Identifier: Apache-2.0
"""The operator in the tests' own process, for those that change something in it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dtjob.kube import process
from tools.cluster.control_plane import ControlPlane


@asynccontextmanager
async def operator_here(cluster: ControlPlane, namespace: str) -> AsyncIterator[None]:
    """The operator of one namespace; ended by SIGTERM, which is waited for."""
    limit = sys.getrecursionlimit()
    options = process.Options(
        namespaces=[namespace], kubeconfig=str(cluster.kubeconfig), resync_seconds=180, report_seconds=5
    )
    running = asyncio.create_task(process.run(options))
    try:
        yield
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(120):
            await running
    finally:
        running.cancel()
        await asyncio.wait([running])
        sys.setrecursionlimit(limit)  # the operator raises it for its process
