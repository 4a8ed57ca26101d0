"""The operator's process: kopf's watches, resync, reconciler and reports, side by side in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import signal
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import kopf

from dtjob import handlers, kube, reports
from dtjob.cluster import ClusterError, JobKey
from dtjob.leader import Election, Leader
from dtjob.liveness import Pulse, serving
from dtjob.reconciler import Reconciler
from dtjob.resync import resync
from dtjob.store import Store
from dtjob.workqueue import WorkQueue

logger = logging.getLogger(__name__)

RESYNC_MAY_TAKE_SECONDS = 300.0
"""How late a resync may be before the process counts as stuck: pages of a large cluster, each up to its timeout."""


@dataclass(frozen=True)
class Options:
    """How to run. `namespaces` empty: the whole cluster. Intervals in seconds. `liveness`: host and port."""

    namespaces: Sequence[str] = ()
    kubeconfig: str | None = None
    resync_seconds: float = 180.0
    report_seconds: float = 5.0
    liveness: tuple[str | None, int] | None = None
    election: Election | None = None


async def run(options: Options) -> None:
    """Run the operator until SIGTERM or SIGINT. Raises ConfigException where no cluster is configured, and
    EndpointError where the liveness port cannot be had."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    pulse = Pulse()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(kube.connect(options.kubeconfig))
        if options.liveness is not None:
            await stack.enter_async_context(serving(pulse, *options.liveness))
        if options.election is not None:
            leader = Leader(cluster, options.election, pulse)
            stack.push_async_callback(leader.release)
            if not await _unless_stopped(stop, leader.acquire()):
                return
        await _operate(cluster, options, pulse, stop)


async def _operate(cluster: kube.Kube, options: Options, pulse: Pulse, stop: asyncio.Event) -> None:
    """Do the operator's work until told to stop; no call of it is under way when this returns."""
    store: Store = Store()
    queue: WorkQueue[JobKey] = WorkQueue()
    if not await _unless_stopped(stop, _first_resync(cluster, store, queue, pulse, options)):
        return
    tasks = [
        asyncio.create_task(Reconciler(cluster, store, queue).run(), name="reconciler"),
        asyncio.create_task(_resync_forever(cluster, store, queue, pulse, options), name="resync"),
        asyncio.create_task(reports.poll_forever(store, queue, options.report_seconds), name="reports"),
        asyncio.create_task(_watch(cluster, store, queue, options), name="watch"),
        asyncio.create_task(_stopped(stop), name="stop"),
    ]
    logger.info("dtjob operator is watching %s", ", ".join(options.namespaces) or "all namespaces")
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work unless told to stop before it is done; whether it was done."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    return not working.cancelled() and not stop.is_set()


async def _first_resync(
    cluster: kube.Kube, store: Store, queue: WorkQueue[JobKey], pulse: Pulse, options: Options
) -> None:
    """Fill the store before anything is decided; an API server that is away is waited for."""
    seconds = 0.5
    while True:
        pulse.beat("resync", options.resync_seconds + RESYNC_MAY_TAKE_SECONDS)
        try:
            for key in await resync(cluster, store, options.namespaces):
                queue.add(key)
            return
        except ClusterError as error:
            logger.warning("cannot list jobs yet: %s; trying again in %.1f s", error, seconds)
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, 30.0)


async def _resync_forever(
    cluster: kube.Kube, store: Store, queue: WorkQueue[JobKey], pulse: Pulse, options: Options
) -> None:
    while True:
        await asyncio.sleep(options.resync_seconds)
        pulse.beat("resync", options.resync_seconds + RESYNC_MAY_TAKE_SECONDS)
        try:
            changed = await resync(cluster, store, options.namespaces)
        except ClusterError as error:
            logger.warning("resync failed: %s", error)
            continue
        for key in changed:
            queue.add(key)


async def _stopped(stop: asyncio.Event) -> None:
    await stop.wait()


async def _watch(cluster: kube.Kube, store: Store, queue: WorkQueue[JobKey], options: Options) -> None:
    """kopf, until it gets SIGTERM or SIGINT, whose handlers it takes over. (Given a stop flag as well, it would wait
    5 s at its end for its own waiting for that flag.)"""
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # Else kopf asks for the user's name, which the uid of a container need not have.
    os.environ.setdefault("POD_ID", platform.node())
    await kopf.operator(
        registry=handlers.registry(store, queue, cluster.credentials),
        settings=handlers.settings(),
        standalone=True,
        clusterwide=not options.namespaces,
        namespaces=list(options.namespaces),
    )
