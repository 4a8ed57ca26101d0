"""PodGroups on an API server: which of their APIs it serves, and which PodGroups of ours there are.

Which version of Kubernetes' own API there is, is asked once it is needed, and kept while it is served. PodGroups are
listed and watched of the providers that some job uses: one that was deleted is made again, and one that was left behind
goes. A cluster without gangs is asked nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from dtjob.api.job import KIND
from dtjob.api.scheduling import GangProvider
from dtjob.controller.cluster import ClusterError, JobKey, Refused
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.informer import Informer, Reads
from dtjob.objects import gangs
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest

logger = logging.getLogger(__name__)

PLURAL = "podgroups"
_OTHER = "or set spec.scheduling.gang.provider to what the cluster has (delete the job and apply it again)"
_MENDS = {
    gangs.KINDS[GangProvider.KUBERNETES]: (
        "kube-apiserver needs --feature-gates=GenericWorkload=true with "
        "--runtime-config=scheduling.k8s.io/v1alpha2=true (Kubernetes 1.36) or scheduling.k8s.io/v1beta1=true (1.37), "
        "and kube-scheduler the same feature gate (1.36: --feature-gates=GenericWorkload=true,GangScheduling=true)"
    ),
    gangs.KINDS[GangProvider.VOLCANO]: "install Volcano, or its definitions",
    gangs.KINDS[GangProvider.COSCHEDULING]: "install scheduler-plugins, or its definition of PodGroups",
}
DROPPED = (
    "this API server has dropped spec.schedulingGroup from the pod, which would be bound without its gang: one of the "
    "cluster's kube-apiservers runs without the feature gate GenericWorkload; turn it on with "
    f"--feature-gates=GenericWorkload=true, {_OTHER}"
)

NOT_AGAIN_SECONDS = 10.0
"""How long it is believed that a kind is not served: a thousand jobs may ask."""
NO_SUCH_RESOURCE = "could not find the requested resource"
"""An API server's words where the kind is not there, and not only the namespace."""

Call = Callable[[str, str], Awaitable[dict[str, Any]]]
"""Makes a call without a body, given its method and path; raises ClusterError."""


def not_served(kind: str) -> str:
    """What to do where an API server has no PodGroups of this kind."""
    group = kind.removeprefix(f"{gangs.POD_GROUP}.")
    return f"this cluster serves no PodGroups of {group}: {_MENDS[kind]}, {_OTHER}"


class Served:
    """The version of each kind of PodGroup that this API server has."""

    def __init__(self, call: Call, clock: Callable[[], float] = time.monotonic) -> None:
        self._call, self._clock = call, clock
        self._known: dict[str, str] = {}
        self._asked_in_vain: dict[str, float] = {}

    async def version(self, kind: str) -> str:
        """The API version. Raises NotServed, with the mend, where there is none; ClusterError where nobody answers."""
        if kind in self._known:
            return self._known[kind]
        if self._clock() < self._asked_in_vain.get(kind, -math.inf) + NOT_AGAIN_SECONDS:
            raise NotServed(not_served(kind))
        found = await self._look(kind)
        if found is None:
            self._asked_in_vain[kind] = self._clock()
            raise NotServed(not_served(kind))
        self._known[kind] = found
        return found

    def forget(self, kind: str) -> None:
        """Look anew when it is next asked for: it may be served no longer, or in another version."""
        self._known.pop(kind, None)

    def words(self, kind: str, error: ApiError) -> str:
        """What a refusal says to users; where a kind of PodGroup has gone meanwhile, what to do."""
        if gangs.is_pod_group(kind) and error.code == 404 and NO_SUCH_RESOURCE in str(error):
            self.forget(kind)
            return not_served(kind)
        if gangs.is_pod_group(kind) and error.code == 403 and "cannot" in str(error):
            return (
                f"{error}; give the operator that right ({gangs.PROVIDERS[kind].value} in the chart's gangs.providers)"
            )
        return str(error)

    async def _look(self, kind: str) -> str | None:
        for version in gangs.VERSIONS[kind]:
            try:
                found = await self._call("GET", f"/apis/{version}")
            except ApiError as error:
                if error.code == 404:
                    continue
                raise
            if any(one["name"] == PLURAL for one in found.get("resources") or ()):
                return version
        return None


class Deletes(Protocol):
    """What deletes objects: `Kube`."""

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> Manifest | None:
        """Delete the object with this uid."""


class PodGroups:
    """Keeps `store` true to the PodGroups that there are, of the providers that some job uses."""

    def __init__(
        self, kube: Reads, store: Store, queue: WorkQueue[JobKey], namespaces: Sequence[str], defaults: Defaults
    ) -> None:
        self._store, self._defaults = store, defaults
        self._informers = {kind: Informer(kube, kind, store, queue, namespaces) for kind in gangs.VERSIONS}
        self._listed: set[str] = set()
        self._changed = asyncio.Event()

    async def resync(self) -> None:
        """List those of the providers in use. What the cluster does not serve, does not let us list, or does not answer
        for now, is left as it is: a job that needs it is told, and all others go on."""
        listed = {kind for kind in kinds_in_use(self._store, self._defaults) if await self._is_listed(kind)}
        if listed != self._listed:
            self._listed = listed
            self._changed.set()

    async def _is_listed(self, kind: str) -> bool:
        try:
            refused = await self._informers[kind].resync()
        except NotServed:
            return False
        except ClusterError as error:
            logger.warning("%s are not listed: %s", kind, error)
            return False
        for words in refused.values():
            logger.warning("%s are not listed: %s", kind, words)
        return True

    async def watch_forever(self) -> None:
        """Watch for ever what the last resync has listed."""
        watching: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                for kind in watching.keys() - self._listed:
                    watching.pop(kind).cancel()
                for kind in self._listed - watching.keys():
                    watching[kind] = asyncio.create_task(self._watch(kind))
        finally:
            for task in watching.values():
                task.cancel()
            await asyncio.gather(*watching.values(), return_exceptions=True)

    async def _watch(self, kind: str) -> None:
        with contextlib.suppress(NotServed):  # a resync finds when it is served again
            await self._informers[kind].watch()
        self._listed.discard(kind)
        self._changed.set()


def kinds_in_use(store: Store, defaults: Defaults) -> list[str]:
    """The kinds of PodGroup that a job asks for, or of which one is known."""
    keys = store.job_keys()
    wanted = {_kind(job, defaults) for key in keys if (job := store.job(key)) is not None}
    known = {one["kind"] for key in keys for one in store.children(key).objects}
    return [kind for kind in gangs.VERSIONS if kind in wanted | known]


def _kind(job: Manifest, defaults: Defaults) -> str | None:
    """The kind of PodGroup of a job as stored, which this version need not be able to read."""
    if job["kind"] != KIND:
        return None
    scheduling = job["spec"].get("scheduling")
    gang = scheduling.get("gang") if isinstance(scheduling, dict) else None
    if not isinstance(gang, dict):
        return None
    began = ((job.get("status") or {}).get(gangs.STATUS_FIELD) or {}).get("provider")
    named = gang.get("provider") or began or defaults.gang_provider.value
    return gangs.KINDS.get(GangProvider(named)) if named in list(GangProvider) else None


async def refuse_dropped(kube: Deletes, wanted: Manifest, stored: Manifest) -> None:
    """Read a pod back that was just made: one that lost its gang is deleted before it is bound somewhere. Raises
    Refused then."""
    if wanted["kind"] == "Pod" and gangs.lost_group(wanted, stored):
        metadata = stored["metadata"]
        await kube.delete("Pod", metadata["namespace"], metadata["name"], metadata["uid"])
        raise Refused(DROPPED)
