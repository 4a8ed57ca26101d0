"""The operator's process: kopf's watches, resync, reconciler and reports, side by side in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import signal
from collections.abc import Sequence
from dataclasses import dataclass

import kopf

from dtjob import handlers, kube, reports
from dtjob.cluster import ClusterError, JobKey
from dtjob.reconciler import Reconciler
from dtjob.resync import resync
from dtjob.store import Store
from dtjob.workqueue import WorkQueue

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """How to run. `namespaces` empty: the whole cluster. Intervals in seconds."""

    namespaces: Sequence[str] = ()
    kubeconfig: str | None = None
    resync_seconds: float = 180.0
    report_seconds: float = 5.0
    liveness_endpoint: str | None = None


async def run(options: Options) -> None:
    """Run the operator until SIGTERM or SIGINT. Raises ConfigException where no cluster is configured."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with kube.connect(options.kubeconfig) as cluster:
        store: Store = Store()
        queue: WorkQueue[JobKey] = WorkQueue()
        await _first_resync(cluster, store, queue, options)
        tasks = [
            asyncio.create_task(Reconciler(cluster, store, queue).run(), name="reconciler"),
            asyncio.create_task(_resync_forever(cluster, store, queue, options), name="resync"),
            asyncio.create_task(reports.poll_forever(store, queue, options.report_seconds), name="reports"),
            asyncio.create_task(_watch(cluster, store, queue, options, stop), name="watch"),
        ]
        logger.info("dtjob operator is watching %s", ", ".join(options.namespaces) or "all namespaces")
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _first_resync(cluster: kube.Kube, store: Store, queue: WorkQueue[JobKey], options: Options) -> None:
    """Fill the store before anything is decided; an API server that is away is waited for."""
    seconds = 0.5
    while True:
        try:
            for key in await resync(cluster, store, options.namespaces):
                queue.add(key)
            return
        except ClusterError as error:
            logger.warning("cannot list jobs yet: %s; trying again in %.1f s", error, seconds)
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, 30.0)


async def _resync_forever(cluster: kube.Kube, store: Store, queue: WorkQueue[JobKey], options: Options) -> None:
    while True:
        await asyncio.sleep(options.resync_seconds)
        try:
            changed = await resync(cluster, store, options.namespaces)
        except ClusterError as error:
            logger.warning("resync failed: %s", error)
            continue
        for key in changed:
            queue.add(key)


async def _watch(
    cluster: kube.Kube, store: Store, queue: WorkQueue[JobKey], options: Options, stop: asyncio.Event
) -> None:
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # Else kopf asks for the user's name, which the uid of a container need not have.
    os.environ.setdefault("POD_ID", platform.node())
    await kopf.operator(
        registry=handlers.registry(store, queue, cluster.credentials),
        settings=handlers.settings(),
        standalone=True,
        clusterwide=not options.namespaces,
        namespaces=list(options.namespaces),
        liveness_endpoint=options.liveness_endpoint,
        stop_flag=stop,
    )
