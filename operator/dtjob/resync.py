"""Resync: a consistent LIST of jobs and of every child kind, merged into the store.

It runs at start-up (it is the warm cache) and every few minutes, and heals what watches cannot: after a 410 and a
relist, objects deleted meanwhile bring no DELETED event, and Services, ConfigMaps and NetworkPolicies are not watched
at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dtjob import labels
from dtjob.api import KIND
from dtjob.cluster import JobKey
from dtjob.kube import Kube, namespaces_or_all
from dtjob.store import CHILD_KINDS, Store


async def resync(kube: Kube, store: Store, namespaces: Sequence[str]) -> set[JobKey]:
    """Bring the store up to what the API server has; the keys of the jobs for which something differed.

    Jobs are listed last: a job without its children would look like one whose pods were all deleted.
    Raises ClusterError where a LIST failed; what was merged before that stays.
    """
    changed: set[JobKey] = set()
    for kind in (*CHILD_KINDS, KIND):
        selector = "" if kind == KIND else labels.JOB_NAME
        lists = await asyncio.gather(*(kube.list_all(kind, name, selector) for name in namespaces_or_all(namespaces)))
        objects = [item for items, _ in lists for item in items]
        # The oldest of the lists' versions: an object newer than that may be missing from a list that is older.
        changed |= store.replace(kind, objects, min(version for _, version in lists))
    return changed
