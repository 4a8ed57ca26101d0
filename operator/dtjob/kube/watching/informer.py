# SPDX-License-Identifier: Apache-2.0
"""Informer: keeps the objects of one kind in the store up to date, with a LIST in pages and a watch from its version.

Each namespace has a LIST and a watch of its own. A watch that ends continues from the last version that it named, in an
event or in a bookmark. If the API server no longer knows what came after that version (410), or names an older one, the
namespace is listed again. A LIST also removes: an object has been deleted if it is older than the LIST and not in it.
"""

import asyncio
import logging
from collections.abc import Container, Iterable, Sequence

from dtjob.api.job import KIND
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.backoff import Backoff
from dtjob.controller.pace.pace import SETTLE_SECONDS, gather_seconds
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store, version_of
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.kube.calls.client import Kube
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest

logger = logging.getLogger(__name__)

LISTS_AT_ONCE = 4
"""Namespaces of which pages are in memory at a time."""
BOOKMARK = "BOOKMARK"
EXPIRED = 410
"""The API server no longer knows what came after a version."""
RECONNECT_SECONDS = 0.1
"""Before a watch that ended well is continued. An API server ends each of them after some minutes."""
RETRY = Backoff(0.5, 5.0)
"""Before a watch that failed is continued. A refused namespace is asked for as often as the longest wait says."""


class VersionsWentBack(Exception):
    """A consistent LIST is older than an earlier one: etcd was restored from a backup. The store then holds versions
    that etcd does not have, and they are newer than all that etcd will have for long."""


class Informer:
    """Objects of one kind in `store`; the jobs that a change concerns go into `queue`. Jobs are of any label, all other
    kinds are those with the label of a job. Without `namespaces` it is for the whole cluster."""

    def __init__(
        self, kube: Kube, kind: str, store: Store, queue: WorkQueue[JobKey], namespaces: Sequence[str] = ()
    ) -> None:
        self._kube, self.kind, self._store, self._queue = kube, kind, store, queue
        self._selector = "" if kind == KIND else labels.JOB_NAME
        self._namespaces: list[str | None] = list(namespaces) or [None]
        self._listed: dict[str | None, int] = {}
        """The version of the newest LIST of each namespace."""
        self._turns = asyncio.Semaphore(LISTS_AT_ONCE)

    async def resync(self, without: Container[str | None] = ()) -> dict[str, str]:
        """List each namespace but `without`; the refused ones, with the API server's words.

        A refused namespace is left as it is: the operator's role goes with it when it is deleted. Raises ClusterError
        if another LIST failed, or if all were refused; what the other LISTs found is in the store by then. Raises
        VersionsWentBack if nothing in the store can be relied on.
        """
        names = [name for name in self._namespaces if name not in without]
        answers = await asyncio.gather(*(self._list(name) for name in names), return_exceptions=True)
        errors = {name: one for name, one in zip(names, answers, strict=True) if isinstance(one, BaseException)}
        failures = [error for error in errors.values() if not _is_forbidden(error)]
        if failures:
            raise next((error for error in failures if isinstance(error, VersionsWentBack)), failures[0])
        if errors and len(errors) == len(names):
            raise next(iter(errors.values()))
        return {name: str(error) for name, error in errors.items() if name is not None}

    async def watch(self) -> None:
        """Watch all namespaces, until cancelled. Raises NotServed if the API server no longer serves the kind, and
        VersionsWentBack."""
        tasks = [asyncio.create_task(self._watch(namespace)) for namespace in self._namespaces]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, namespace: str | None) -> None:
        version, failures, logged = self._listed.get(namespace), 0, ""
        while True:
            try:
                if version is None:
                    version = await self._list(namespace)
                async for happened, found in self._kube.watch(self.kind, namespace, self._selector, version):
                    if version_of(found) < version:  # etcd was restored from a backup, which a LIST shows
                        version = None
                        break
                    version, failures, logged = version_of(found), 0, ""
                    if happened != BOOKMARK:
                        take_in(self._store, self._queue, happened, found)
                await asyncio.sleep(RECONNECT_SECONDS)
            except NotServed:
                raise
            except ClusterError as error:
                failures += 1
                if isinstance(error, ApiError) and error.code == EXPIRED:
                    version = None
                elif str(error) != logged and not _is_forbidden(error):  # what is forbidden, each resync tells
                    logged = str(error)
                    logger.warning("the watch of %ss in %s: %s", self.kind, namespace or "all namespaces", error)
                await asyncio.sleep(max(RETRY.after(failures), error.retry_after))

    async def _list(self, namespace: str | None) -> int:
        """Take in one namespace; the version of the LIST."""
        async with self._turns:
            before, present, version = self._listed.get(namespace, 0), set[str](), 0
            async for page, version in self._kube.pages(self.kind, namespace, self._selector):
                for found in page:
                    present.add(found["metadata"]["uid"])
                    take_in(self._store, self._queue, None, found, version)
        if version < before:
            words = f"the list of {self.kind}s is of version {version}, and an earlier one was of {before}"
            raise VersionsWentBack(words)
        # Another LIST may have been answered meanwhile.
        self._listed[namespace] = max(version, self._listed.get(namespace, 0))
        for key in self._store.prune(self.kind, present, version, namespace):
            self._queue.add(key)
        return version


async def resync(informers: Sequence[Informer], without: Iterable[str] = ()) -> dict[str, str]:
    """List all kinds, one after the other, in each namespace but `without`; the refused ones, with the API server's
    words. Raises as `Informer.resync`.

    Jobs come last: a job without its children would look like one whose pods were all deleted. If one kind is refused
    in a namespace, the kinds that follow are not asked for there.
    """
    refused: dict[str, str] = {}
    for informer in informers:
        refused |= await informer.resync({*without, *refused})
    return refused


def take_in(
    store: Store, queue: WorkQueue[JobKey], happened: str | None, manifest: Manifest, listed_at: int | None = None
) -> None:
    """Take in one object, given what happened to it: ADDED, MODIFIED, DELETED, or None if the LIST of version
    `listed_at` has it. Raises nothing."""
    try:
        key = store.remove(manifest) if happened == "DELETED" else store.apply(manifest, listed_at)
        if key is None:
            return
        if manifest["kind"] in (KIND, kueue.KIND):
            queue.add(key)
        else:
            settle = 0.0 if happened == "DELETED" or _is_urgent(manifest) else SETTLE_SECONDS
            queue.add_gathered(key, gather_seconds(store.size(key)), settle)
    except Exception:  # one tenant's object is no reason to hear of no other's
        name = manifest.get("metadata", {}).get("name")
        logger.exception("a bug in dtjob, in taking in %s %s", manifest["kind"], name)


def _is_urgent(manifest: Manifest) -> bool:
    """Whether this pod has failed; or has finished and is about to go, after which nobody could tell that it had."""
    phase = (manifest.get("status") or {}).get("phase")
    return phase == "Failed" or (phase == "Succeeded" and "deletionTimestamp" in manifest["metadata"])


def _is_forbidden(error: BaseException) -> bool:
    """Whether the operator may not read a namespace. (404 means that no namespace has such a kind.)"""
    return isinstance(error, ApiError) and error.code == 403
