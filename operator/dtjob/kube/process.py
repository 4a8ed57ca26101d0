# SPDX-License-Identifier: Apache-2.0
"""The operator's process: watches, resync, reconciler and reports, side by side in one event loop."""

import asyncio
import functools
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dtjob.api.job import KIND
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.backoff import Backoff
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.reconciler import Reconciler
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.calls import client
from dtjob.kube.calls.transport import hold_little_for_each_connection
from dtjob.kube.election.leader import Leader, begin_anew
from dtjob.kube.election.lease import Election
from dtjob.kube.endpoints.endpoint import Address, Pulse, serving
from dtjob.kube.endpoints.metrics import Metrics
from dtjob.kube.endpoints.reports import Reports
from dtjob.kube.watching import handlers, job_watches
from dtjob.kube.watching.informer import Informer, VersionsWentBack, resync, take_in
from dtjob.kube.watching.namespaces import Watched, look_for_refused
from dtjob.kube.watching.pod_groups import PodGroups
from dtjob.kube.watching.workloads import Workloads
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.plan.seen.workload import Kueue

logger = logging.getLogger(__name__)

RESYNC_MAY_TAKE_SECONDS = 300.0
"""How late a resync may be before the process counts as stuck: pages of a large cluster, each up to its timeout."""

RECURSION_LIMIT = 50_000
"""The API server takes objects that are nested 10,000 levels deep, and kopf's parser recurses into them. From Python
3.12 on it has a limit of its own, about as high."""

CHILDREN_SECONDS = 3600.0
"""How often the pods and other objects of jobs are listed again: 28 MB for 4,000 pods. Their watches name the version
that they have reached, and list again by themselves after a gap. So this heals only what an API server never told."""

RESYNC_AGAIN_SECONDS = 10.0
"""How soon a resync that failed is tried again."""

FIRST_RESYNC_AGAIN = Backoff(0.5, 2.0)
"""Before the first resync is tried again: no job is looked at before it."""

LOOP_AGAIN = Backoff(1.0, 30.0)
"""Before a loop that has ended begins anew."""

WELL_AFTER_SECONDS = 60.0
"""A loop that ran for so long is well again: its next pause is the first one."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run. `namespaces` empty: the whole cluster. `liveness` and `metrics`: where `/healthz` and `/metrics` are
    answered. The command line has the defaults of the intervals."""

    resync_seconds: float
    report_seconds: float
    concurrency: int = 20
    namespaces: Sequence[str] = ()
    kubeconfig: str | None = None
    liveness: Address | None = None
    metrics: Address | None = None
    election: Election | None = None
    defaults: Defaults = NO_DEFAULTS


async def run(options: Options) -> None:
    """Run the operator until SIGTERM or SIGINT. Raises NoCluster if none is configured, and EndpointError if the port
    of liveness or metrics cannot be had. Raises VersionsWentBack if only a new process can go on."""
    stop = asyncio.Event()
    _stop_by_signals(stop)
    sys.setrecursionlimit(RECURSION_LIMIT)
    hold_little_for_each_connection()
    pulse, metrics = Pulse(), Metrics()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(client.connect(options.kubeconfig, observer=metrics))
        if options.liveness is not None:
            await stack.enter_async_context(serving("/healthz", pulse.answer, options.liveness, "--liveness"))
        if options.metrics is not None:
            await stack.enter_async_context(serving("/metrics", metrics.answer, options.metrics, "--metrics"))
        if options.election is not None:
            leader = Leader(cluster, options.election, pulse, functools.partial(_end_at_once, stop))
            stack.push_async_callback(leader.release)
            if not await _unless_stopped(stop, leader.acquire()):
                return
        metrics.leads()
        await _operate(cluster, options, pulse, metrics, stop)


def _end_at_once(stop: asyncio.Event) -> None:
    """End all that this program does. It begins anew, unless it was told to stop, of which a new one would not know."""
    if stop.is_set():
        logging.shutdown()
        os._exit(1)
    begin_anew()


async def _operate(cluster: client.Kube, options: Options, pulse: Pulse, metrics: Metrics, stop: asyncio.Event) -> None:
    """Do the operator's work until told to stop; no call of it is under way when this returns."""
    store: Store = Store()
    queue: WorkQueue[JobKey] = WorkQueue(store.has_ended_pods)
    watched = Watched(options.namespaces)
    informers = [Informer(cluster, kind, store, queue, options.namespaces) for kind in (*LISTED_KINDS, KIND)]
    workloads = Workloads(cluster, store, queue, options.namespaces)
    pod_groups = PodGroups(cluster, store, queue, options.namespaces, options.defaults)
    metrics.watch(store, queue)

    async def resync_once(children: bool = True) -> None:
        pulse.beat("resync", options.resync_seconds + RESYNC_MAY_TAKE_SECONDS)
        known = set(store.job_keys())
        if children:
            watched.note(await resync(informers))
        else:
            watched.note(await resync(informers[-1:], without=watched.refused), set(watched.namespaces))
        new = [job for key in store.job_keys() if key not in known and (job := store.job(key)) is not None]
        if job_watches.have_missed_one(new, datetime.now(UTC)):
            watched.changed.set()
        await pod_groups.resync()
        if store.kueue is Kueue.UNKNOWN:  # before anything is decided; later they have a loop of their own
            await _kueue_aside(workloads.resync)
        metrics.resynced()

    if not await _unless_stopped(stop, _first_resync(resync_once)):
        return
    collect_garbage_seldom()
    registry = handlers.registry(cluster, functools.partial(take_in, store, queue))
    spawn = job_watches.kopf_watches(registry, lambda: _stop_by_signals(stop))
    reconciler = Reconciler(cluster, store, queue, defaults=options.defaults, observer=metrics)
    reports = Reports(store, queue, options.report_seconds)

    loops: dict[str, Callable[[], Awaitable[None]]] = {
        "reconciler": lambda: reconciler.run(options.concurrency),
        "resync": lambda: _resync_forever(resync_once, options.resync_seconds),
        "reports": reports.poll_forever,
        "Workloads": workloads.watch_forever,
        "PodGroups": pod_groups.watch_forever,
        "jobs": lambda: job_watches.watch_forever(spawn, watched, resync_once),
        **{f"{one.kind}s": one.watch for one in informers if one.kind != KIND},
    }
    if options.namespaces:
        loops["refused namespaces"] = lambda: look_for_refused(informers, watched)
    logger.info("dtjob operator is watching %s", ", ".join(watched.namespaces) or "all namespaces")
    await _unless_stopped(stop, *(keep_running(name, run) for name, run in loops.items()))


def _stop_by_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)


async def _unless_stopped(stop: asyncio.Event, *work: Coroutine[Any, Any, None]) -> bool:
    """Work until a part of it is done, or until told to stop; then end all of it. Returns whether a part was done
    before the stop. Raises what that part raised."""
    tasks = [asyncio.create_task(one) for one in (stop.wait(), *work)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    return not stop.is_set()


async def _first_resync(resync_once: Callable[[], Awaitable[None]]) -> None:
    """Fill the store before anything is decided; an API server that is away, or does not know jobs yet, is waited
    for."""
    failures, logged = 0, ""
    while True:
        try:
            await resync_once()
            return
        except VersionsWentBack:
            raise
        except Exception as error:
            if str(error) != logged:
                logged, unexpected = str(error), None if isinstance(error, ClusterError) else error
                logger.warning("cannot list jobs yet: %s; trying until it can", error, exc_info=unexpected)
            failures += 1
            told = error.retry_after if isinstance(error, ClusterError) else 0.0
            await asyncio.sleep(max(FIRST_RESYNC_AGAIN.after(failures), told))


async def _kueue_aside(resync_workloads: Callable[[], Awaitable[object]]) -> None:
    """Look for Kueue. Where it does not answer (its conversion webhook is away, say) only jobs in queues wait for it:
    its own loop asks again."""
    try:
        await resync_workloads()
    except ClusterError as error:
        logger.warning("Workloads are not listed: %s", error)


async def _resync_forever(resync_once: Callable[[bool], Awaitable[None]], every_seconds: float) -> None:
    """Resync jobs every `every_seconds`, and each CHILDREN_SECONDS all that belongs to them too. Everything was listed
    just now. After a failure, try again sooner, and wait longer after each further failure."""
    again, failures, wait = Backoff(min(RESYNC_AGAIN_SECONDS, every_seconds), every_seconds), 0, every_seconds
    clock = asyncio.get_running_loop().time
    listed = clock()
    while True:
        await asyncio.sleep(wait)
        now = clock()
        children = now - listed >= CHILDREN_SECONDS
        try:
            await resync_once(children)
        except ClusterError as error:
            failures += 1
            wait = max(again.after(failures), error.retry_after)
            logger.warning("resync failed: %s; trying again in %.0f s", error, wait)
        else:
            failures, wait, listed = 0, every_seconds, now if children else listed


def collect_garbage_seldom() -> None:
    """Never look again for garbage among modules and what the first resync found, and seldom elsewhere. With 4,000 pods
    a full collection held the event loop for 0.2 s."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 20, 20)


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
        pause = LOOP_AGAIN.after(failures)
        logger.error("%s ended, a bug in dtjob; it begins again in %.0f s", name, pause, exc_info=error)
        await asyncio.sleep(pause)
