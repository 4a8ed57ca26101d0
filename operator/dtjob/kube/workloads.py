"""Workloads of Kueue in the store: listed and watched for as long as there is Kueue, which may come and go.

kopf watches a set of kinds that is fixed when it starts; so these have a loop of their own. Nothing is asked for but
whether there is Kueue, once in a while, where there is none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube
from dtjob.kube.namespaces import namespaces_or_all
from dtjob.objects import kueue, labels
from dtjob.plan.workload import Kueue

logger = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 5.0
"""How often an API server without Kueue is asked whether it has it by now."""
PAUSE_SECONDS = 1.0
"""After a watch that broke, before all is listed anew."""


class Workloads:
    """Keeps the store's Workloads up to date, and tells it whether there is Kueue."""

    def __init__(
        self, kube: Kube, store: Store, queue: WorkQueue[JobKey], namespaces: Sequence[str], every: float | None = None
    ) -> None:
        self._kube, self._store, self._queue = kube, store, queue
        self._namespaces, self._every = namespaces, LOOK_EVERY_SECONDS if every is None else every
        store.kueue = Kueue.UNKNOWN

    async def resync(self) -> dict[str | None, int]:
        """Look for Kueue, and list all Workloads of jobs; the version of each list, by namespace. Raises ClusterError
        where the API server does not answer: what was known stays."""
        if not await self._kube.has_kueue():
            self._found(Kueue.ABSENT)
            return {}
        versions: dict[str | None, int] = {}
        present, refused = set[str](), list[str]()
        for namespace in namespaces_or_all(self._namespaces):
            try:
                versions[namespace] = await self._list(namespace, present)
            except ApiError as error:
                if error.code != 403:
                    raise
                refused.append(namespace or "")  # it is being deleted with our role, or the role says nothing of Kueue
        if not versions:
            self._found(Kueue.FORBIDDEN)
            return {}
        for key in self._store.prune(kueue.KIND, present, min(versions.values()), refused):
            self._queue.add(key)
        self._found(Kueue.THERE)
        return versions

    async def _list(self, namespace: str | None, present: set[str]) -> int:
        """Take in the Workloads of one namespace, with their uids into `present`; the list's version."""
        version = 0
        async for page, version in self._kube.pages(kueue.KIND, namespace, labels.JOB_NAME):  # noqa: B007 (returned)
            for manifest in page:
                present.add(manifest["metadata"]["uid"])
                self._due(self._store.apply(manifest))
        return version

    async def watch_forever(self) -> None:
        """List and watch for ever."""
        while True:
            try:
                versions = await self.resync()
                if not versions:
                    await asyncio.sleep(self._every)
                    continue
                await self._watch_until_one_ends(versions)
            except ClusterError as error:
                logger.warning("Workloads: %s; listing them again", error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _watch_until_one_ends(self, versions: dict[str | None, int]) -> None:
        """Watch each namespace from its version on, until one watch has ended. Raises what ended it."""
        tasks = [asyncio.create_task(self._watch(*one)) for one in versions.items()]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, namespace: str | None, version: int) -> None:
        async for type_, manifest in self._kube.watch_workloads(namespace, version):
            known = self._store.remove(manifest) if type_ == "DELETED" else self._store.apply(manifest)
            self._due(known)

    def _found(self, state: Kueue) -> None:
        """Take in whether there is Kueue: what queued jobs say changes with it."""
        if self._store.kueue is state:
            return
        logger.info("Kueue (%s): %s", kueue.API_VERSION, state.value)
        self._store.kueue = state
        for key in self._store.job_keys():
            self._due(key)

    def _due(self, key: JobKey | None) -> None:
        if key is not None:
            self._queue.add(key)
