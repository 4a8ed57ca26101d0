"""Asking the cluster for pods by name, where the watch may have lost sight of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from dtjob.api.job import Job
from dtjob.controller.cluster import Cluster
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import Children


async def look(
    cluster: Cluster, slots: asyncio.Semaphore, job: Job, children: Children, names: Sequence[str]
) -> Children:
    """The children with the answers: pods of this very job that are there, and the names of those that are gone.

    Raises ClusterError where the cluster did not answer.
    """

    async def ask(name: str) -> Manifest | None:
        async with slots:
            return await cluster.get("Pod", job.metadata.namespace, name)

    found = dict(zip(names, await asyncio.gather(*(ask(name) for name in names)), strict=True))
    ours = {
        name: pod for name, pod in found.items() if pod is not None and labels.controller_uid(pod) == job.metadata.uid
    }
    # By name, as the store has them: an object that it has under one of these is not ours.
    return replace(
        children,
        objects=(*children.objects, *ours.values()),
        gone=children.gone | (set(names) - set(ours)),
    )
