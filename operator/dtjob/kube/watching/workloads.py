# SPDX-License-Identifier: Apache-2.0
"""Workloads of Kueue in the store: listed and watched for as long as there is Kueue, which may come and go.

Where there is no Kueue, the API server is only asked whether it has Kueue by now: seldom, unless a job names a queue.
"""

import asyncio
import logging
from collections.abc import Sequence

from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.calls.client import Kube
from dtjob.kube.watching.informer import Informer
from dtjob.objects import kueue, labels
from dtjob.plan.seen.workload import Kueue

logger = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 5.0
"""How often an API server without Kueue is asked whether it has Kueue by now, while a job names a queue."""
MOST_TICKS = 60
"""While no job names a queue, the waits grow: 1, 2, 4, … times LOOK_EVERY_SECONDS. This is the largest factor."""


class Workloads:
    """Keeps the store's Workloads up to date, and tells it whether there is Kueue."""

    def __init__(self, kube: Kube, store: Store, queue: WorkQueue[JobKey], namespaces: Sequence[str]) -> None:
        self._kube, self._store, self._queue = kube, store, queue
        self._informer = Informer(kube, kueue.KIND, store, queue, namespaces)
        store.kueue = Kueue.UNKNOWN

    async def resync(self) -> bool:
        """Look for Kueue, and list all Workloads of jobs; whether there are any to watch. Raises ClusterError if the
        API server does not answer: what was known stays."""
        if not await self._kube.serves(kueue.API_VERSION, kueue.PLURAL):
            self._found(Kueue.ABSENT)
            return False
        try:
            await self._informer.resync()  # a refused namespace is being deleted, with our role in it
        except ApiError as error:
            if error.code != 403:
                raise
            self._found(Kueue.FORBIDDEN)
            return False
        self._found(Kueue.THERE)
        return True

    async def watch_forever(self) -> None:
        """List and watch for ever. If they are listed already, begin with the watch."""
        listed, ticks = self._store.kueue is Kueue.THERE, 1
        while True:
            try:
                if listed or await self.resync():
                    await self._informer.watch()
            except ClusterError as error:
                logger.warning("Workloads: %s; listing them again", error)
            listed = False
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            absent, waited = self._store.kueue is Kueue.ABSENT, 1
            while absent and waited < ticks and not self._is_wanted():
                await asyncio.sleep(LOOK_EVERY_SECONDS)
                waited += 1
            ticks = min(2 * ticks, MOST_TICKS) if absent else 1

    def _is_wanted(self) -> bool:
        """Whether a job names a queue."""
        jobs = (self._store.job(key) for key in self._store.job_keys())
        return any(kueue.QUEUE in labels.of(job) for job in jobs if job is not None)

    def _found(self, state: Kueue) -> None:
        """Take in whether there is Kueue: what queued jobs say changes with it."""
        if self._store.kueue is state:
            return
        logger.info("Kueue (%s): %s", kueue.API_VERSION, state.value)
        self._store.kueue = state
        for key in self._store.job_keys():
            self._queue.add(key)
