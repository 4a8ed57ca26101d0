"""Resync: a consistent LIST of jobs and of every child kind that may be listed, merged into the store page by page.

It runs at start-up (it is the warm cache) and every few minutes, and heals what watches cannot: after a 410 and a
relist, objects deleted meanwhile bring no DELETED event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube
from dtjob.kube.namespaces import namespaces_or_all
from dtjob.objects import labels

LISTS_AT_ONCE = 4
"""Namespaces of which pages are in memory at a time."""


class VersionsWentBack(Exception):
    """A consistent LIST is older than an earlier one: etcd was restored from a backup. What is known is of a future
    that never was, and newer than all that will be told for long."""


async def resync(kube: Kube, store: Store, namespaces: Sequence[str], changed: set[JobKey]) -> dict[str, str]:
    """Bring the store up to what the API server has. Gives the namespaces that it does not let us list, with its words.

    The keys of the jobs for which something differed go into `changed` as they are found: those that came before a
    failure are to be looked at too, for no later resync finds a difference there.

    A named namespace that may not be listed is left as it is: its roles go with it when it is deleted, and the others
    must not suffer. Jobs are listed last: a job without its children would look like one whose pods were all deleted.
    Raises ClusterError where another LIST failed, or all were refused; what was merged before that stays. Raises
    VersionsWentBack where nothing that is known holds any more.
    """
    refused: dict[str, str] = {}
    for kind in (*LISTED_KINDS, KIND):
        listing = _Listing(kube, store, kind, changed)
        names = [name for name in namespaces_or_all(namespaces) if name not in refused]
        before = store.listed_at.get(kind, 0)  # by lists that were answered before these are asked for
        # Each to its end: what one still found after another's failure would be told to nobody any more.
        answers = await asyncio.gather(*(listing.take_in(name) for name in names), return_exceptions=True)
        errors = {name: one for name, one in zip(names, answers, strict=True) if isinstance(one, BaseException)}
        if failures := [error for error in errors.values() if not _is_forbidden(error)]:
            raise failures[0]
        refused |= {name: str(error) for name, error in errors.items() if name is not None}
        versions = [answer for answer in answers if isinstance(answer, int)]
        if not versions:
            raise next(iter(errors.values()))
        # The oldest of the lists' versions: an object newer than that may be missing from a list that is older.
        version = min(versions)
        if version < before:
            raise VersionsWentBack(f"the list of {kind}s is of version {version}, and an earlier one was of {before}")
        store.listed_at[kind] = max(version, store.listed_at.get(kind, 0))
        changed |= store.prune(kind, listing.present, version, refused)
    return refused


@dataclass
class _Listing:
    """The lists of one kind: the uids that they hold; the jobs for which something differs go into `changed`."""

    kube: Kube
    store: Store
    kind: str
    changed: set[JobKey]
    present: set[str] = field(default_factory=set)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LISTS_AT_ONCE))

    async def take_in(self, namespace: str | None) -> int:
        """Take in one namespace; the LIST's version. Raises ClusterError."""
        selector, version = "" if self.kind == KIND else labels.JOB_NAME, 0
        async with self.turns:
            async for page, version in self.kube.pages(self.kind, namespace, selector):  # noqa: B007 (returned)
                for manifest in page:
                    self.present.add(manifest["metadata"]["uid"])
                    if (key := self.store.apply(manifest)) is not None:
                        self.changed.add(key)
        return version


def _is_forbidden(error: BaseException) -> bool:
    """Whether we may not have a namespace's. (404 means that there is no such kind, in no namespace.)"""
    return isinstance(error, ApiError) and error.code == 403
