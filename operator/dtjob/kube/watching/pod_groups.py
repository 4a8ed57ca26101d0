# SPDX-License-Identifier: Apache-2.0
"""PodGroups: the ones of the providers that some job uses are listed and watched.

One that was deleted is made again, and one that was left behind goes. A cluster without gangs is asked nothing.
"""

import asyncio
import logging
from collections.abc import Sequence

from dtjob.api.spec.scheduling import GangProvider
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.api_error import NotServed
from dtjob.kube.calls.client import Kube
from dtjob.kube.watching.informer import Informer, VersionsWentBack
from dtjob.objects import gangs
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest

logger = logging.getLogger(__name__)


class PodGroups:
    """Keeps `store` true to the PodGroups that there are, of the providers that some job uses."""

    def __init__(
        self, kube: Kube, store: Store, queue: WorkQueue[JobKey], namespaces: Sequence[str], defaults: Defaults
    ) -> None:
        self._store, self._defaults = store, defaults
        self._informers = {kind: Informer(kube, kind, store, queue, namespaces) for kind in gangs.VERSIONS}
        self._listed = {kind: asyncio.Event() for kind in gangs.VERSIONS}

    async def resync(self) -> None:
        """List those of the providers in use. A kind stays as it is if the cluster does not serve it, does not let us
        list it, or does not answer. A job that needs it is told, and all others go on."""
        for kind in kinds_in_use(self._store, self._defaults):
            try:
                refused = await self._informers[kind].resync()
            except NotServed:
                continue
            except ClusterError as error:
                logger.warning("%s are not listed: %s", kind, error)
                continue
            for words in refused.values():
                logger.warning("%s are not listed: %s", kind, words)
            self._listed[kind].set()

    async def watch_forever(self) -> None:
        """Watch for ever what resyncs have listed. Raises VersionsWentBack."""
        await asyncio.gather(*(self._watch(kind) for kind in self._informers))

    async def _watch(self, kind: str) -> None:
        """Watch whenever a resync has listed them, until the watch ends."""
        while True:
            await self._listed[kind].wait()
            self._listed[kind].clear()
            try:
                await self._informers[kind].watch()
            except NotServed as error:
                logger.info("the watch of %ss: %s", kind, error)
            except VersionsWentBack:  # the process ends and begins with an empty store
                raise
            except Exception:
                logger.exception("the watch of %ss ended, a bug in dtjob", kind)


def kinds_in_use(store: Store, defaults: Defaults) -> list[str]:
    """The kinds of PodGroup that a job asks for, or of which one is known."""
    keys = store.job_keys()
    wanted = {_kind(job, defaults) for key in keys if (job := store.job(key)) is not None}
    known = {one["kind"] for key in keys for one in store.children(key).objects}
    return [kind for kind in gangs.VERSIONS if kind in wanted | known]


def _kind(job: Manifest, defaults: Defaults) -> str | None:
    """The kind of PodGroup of a job as stored, which this version need not be able to read."""
    scheduling = job["spec"].get("scheduling")
    gang = scheduling.get("gang") if isinstance(scheduling, dict) else None
    if not isinstance(gang, dict):
        return None
    began = ((job.get("status") or {}).get(gangs.STATUS_FIELD) or {}).get("provider")
    named = gang.get("provider") or began or defaults.gang_provider.value
    return gangs.KINDS.get(GangProvider(named)) if named in list(GangProvider) else None
