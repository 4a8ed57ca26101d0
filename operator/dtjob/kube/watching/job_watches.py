# SPDX-License-Identifier: Apache-2.0
"""Job watches: kopf watches jobs as long as the operator runs, in the namespaces that may be watched.

kopf watches a set of namespaces that is fixed when it starts, and ends as a whole if one watch is refused. So it is
started again whenever other namespaces are to be watched, and whenever it ended: its first LIST finds what was missed.

`kopf.spawn_tasks` is the first half of `kopf.operator`. The other half cannot be stopped beside other work. At its end
it cancels every task of the process that is younger than itself, whoever made it.
"""

import asyncio
import logging
import os
import platform
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

import kopf

from dtjob import times
from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.backoff import Backoff
from dtjob.kube.watching.informer import VersionsWentBack
from dtjob.kube.watching.namespaces import Watched
from dtjob.objects.manifest import Manifest

logger = logging.getLogger(__name__)

RETRY = Backoff(1.0, 5.0)
"""What ended the watches may pass at any moment. Until they begin again only a resync tells of a job."""

LONGEST_END_SECONDS = 10.0
"""How long to wait until cancelled watches have ended. They need two seconds at most."""

HEARD_WITHIN = timedelta(seconds=30)
"""Watches tell of a new job within this."""

Spawn = Callable[[list[str]], Awaitable[Collection[asyncio.Task[None]]]]
"""Begins to watch these namespaces; an empty list means the whole cluster. Returns tasks that watch until cancelled."""


def kopf_watches(registry: kopf.OperatorRegistry, take_signals: Callable[[], None]) -> Spawn:
    """kopf as what watches. `take_signals` puts our own handlers of SIGTERM and SIGINT back, which kopf replaces."""
    logging.getLogger("kopf").setLevel(logging.WARNING)
    # Else kopf asks for the user's name, which the uid of a container need not have.
    os.environ.setdefault("POD_ID", platform.node())

    async def spawn(namespaces: list[str]) -> Collection[asyncio.Task[None]]:
        tasks: Collection[asyncio.Task[None]] = await kopf.spawn_tasks(
            registry=registry, standalone=True, clusterwide=not namespaces, namespaces=namespaces
        )
        take_signals()
        return tasks

    return spawn


async def watch_forever(spawn: Spawn, watched: Watched, resync_once: Callable[[], Awaitable[None]]) -> None:
    """Watch for ever. After a failure the watches begin again once a resync has succeeded.

    The resync finds which namespaces can be had. And kopf never watches jobs if the API server does not serve them
    when it begins. Raises VersionsWentBack.
    """
    failures = 0
    while True:
        resynced = not failures
        try:
            if not resynced:
                await resync_once()
                resynced = True
            watched.changed.clear()
            await _watch(spawn, watched)
            failures = 0
        except VersionsWentBack:
            raise
        except Exception as error:
            failures += 1
            pause, why = RETRY.after(failures), error or type(error).__name__
            what = "the watches ended" if resynced else "the watches cannot begin"
            bug = None if resynced or isinstance(error, ClusterError) else error
            logger.warning("%s (%s); beginning again in %.0f s", what, why, pause, exc_info=bug)
            await asyncio.sleep(pause)


def have_missed_one(found: Iterable[Manifest], now: datetime) -> bool:
    """Whether the watches should have told of one of these jobs, which a resync has found.

    kopf asks once which kinds there are. If the answer came from an API server that did not know jobs yet, kopf never
    watches them, and says so to nobody.
    """
    return any(times.parse(job["metadata"]["creationTimestamp"]) + HEARD_WITHIN < now for job in found)


async def _watch(spawn: Spawn, watched: Watched) -> None:
    """Watch until other namespaces are to be watched. Raises what ended the watches."""
    changed = asyncio.create_task(watched.changed.wait())
    tasks: Collection[asyncio.Task[None]] = ()
    try:
        if watched.whole_cluster or watched.namespaces:
            tasks = await spawn(watched.namespaces)
        done, _ = await asyncio.wait([*tasks, changed], return_when=asyncio.FIRST_COMPLETED)
        for task in done - {changed}:
            raise _error(task)
    finally:
        await _end([*tasks, changed])


def _error(task: asyncio.Task[Any]) -> Exception:
    error = None if task.cancelled() else task.exception()
    return error if isinstance(error, Exception) else RuntimeError(f"{task.get_name()} has ended")


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel the tasks and wait until each has cleaned up behind itself, but not for ever."""
    for task in tasks:
        task.cancel()
    done, late = await asyncio.wait(tasks, timeout=LONGEST_END_SECONDS)
    for task in done:
        _error(task)  # else asyncio complains that nobody looked at it
    for task in late:
        logger.warning("%s does not end", task.get_name())
