"""Asking the cluster for pods by name, where the watch may have lost sight of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from dtjob.api.job import Job
from dtjob.controller.cluster import Cluster
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import Children
from dtjob.plan.pod_facts import facts_of


async def look(
    cluster: Cluster, slots: asyncio.Semaphore, job: Job, children: Children, names: Sequence[str]
) -> Children:
    """The children with the answers: pods of this very job that are there, and the names of those that are gone, or
    whose owner says that they are no task of this job's.

    Raises ClusterError where the cluster did not answer.
    """

    async def ask(name: str) -> Manifest | None:
        async with slots:
            return await cluster.get("Pod", job.metadata.namespace, name)

    found = dict(zip(names, await asyncio.gather(*(ask(name) for name in names)), strict=True))
    # A pod of which the plan finds no task would be asked for without end.
    ours = {name: pod for name, pod in found.items() if pod is not None and _is_ours(job, pod)}
    # By name, as the store has them: an object that it has under one of these is not ours.
    return replace(
        children,
        objects=(*children.objects, *ours.values()),
        gone=children.gone | (set(names) - set(ours)),
    )


def _is_ours(job: Job, pod: Manifest) -> bool:
    facts = facts_of(pod)
    return facts.controller == job.metadata.uid and facts.task_id is not None
