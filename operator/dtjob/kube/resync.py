"""Resync: a consistent LIST of jobs and of every child kind that may be listed, merged into the store.

It runs at start-up (it is the warm cache) and every few minutes, and heals what watches cannot: after a 410 and a
relist, objects deleted meanwhile bring no DELETED event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube, namespaces_or_all
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest


@dataclass(frozen=True)
class Resynced:
    """What a resync found: the keys of the jobs for which something differed, and the namespaces that the API server
    does not let us list, with its words."""

    changed: set[JobKey]
    refused: dict[str, str]


async def resync(kube: Kube, store: Store, namespaces: Sequence[str]) -> Resynced:
    """Bring the store up to what the API server has.

    A named namespace that may not be listed is left as it is: its roles go with it when it is deleted, and the others
    must not suffer. Jobs are listed last: a job without its children would look like one whose pods were all deleted.
    Raises ClusterError where another LIST failed, or all were refused; what was merged before that stays.
    """
    changed: set[JobKey] = set()
    refused: dict[str, str] = {}
    for kind in (*LISTED_KINDS, KIND):
        selector = "" if kind == KIND else labels.JOB_NAME
        names = [name for name in namespaces_or_all(namespaces) if name not in refused]
        answers = await asyncio.gather(*(_list(kube, kind, name, selector) for name in names))
        errors = {name: answer for name, answer in zip(names, answers, strict=True) if isinstance(answer, ApiError)}
        refused |= {name: str(error) for name, error in errors.items() if name is not None}
        lists = [answer for answer in answers if not isinstance(answer, ApiError)]
        if not lists:
            raise next(iter(errors.values()))
        objects = [item for items, _ in lists for item in items]
        # The oldest of the lists' versions: an object newer than that may be missing from a list that is older.
        changed |= store.replace(kind, objects, min(version for _, version in lists), refused)
    return Resynced(changed, refused)


async def _list(kube: Kube, kind: str, namespace: str | None, selector: str) -> tuple[list[Manifest], int] | ApiError:
    """The LIST, or the error where we may not have it. (404 means that there is no such kind, in no namespace.)"""
    try:
        return await kube.list_all(kind, namespace, selector)
    except ApiError as error:
        if error.code == 403:
            return error
        raise
