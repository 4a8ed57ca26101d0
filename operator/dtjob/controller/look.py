"""Asking the cluster for pods by name, where the watch may have lost sight of them, and for what nobody watches."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from dtjob.api.job import Job
from dtjob.controller.cluster import Cluster
from dtjob.controller.pace.slots import Slots
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.pod_facts import facts_of


async def look(cluster: Cluster, slots: Slots, job: Job, children: Children, names: Sequence[str]) -> Children:
    """The children with the answers: pods of this very job that are there, and the names of those that are gone, or
    whose owner says that they are no task of this job's.

    Raises ClusterError where the cluster did not answer.
    """

    async def ask(name: str) -> Manifest | None:
        async with slots.of((job.metadata.namespace, job.metadata.name), "Get Pod"):
            return await cluster.get("Pod", job.metadata.namespace, name)

    found = dict(zip(names, await _answers([ask(name) for name in names]), strict=True))
    # A pod of which the plan finds no task would be asked for without end.
    ours = {name: pod for name, pod in found.items() if pod is not None and _is_ours(job, pod)}
    # By name, as the store has them: an object that it has under one of these is not ours.
    return replace(
        children,
        objects=(*children.objects, *ours.values()),
        gone=children.gone | (set(names) - set(ours)),
    )


async def read(
    cluster: Cluster, slots: Slots, job: Job, children: Children, wanted: Sequence[tuple[str, str]]
) -> Children:
    """The children with the answers about objects, by kind and name, that are not the job's: of the cluster's own, and
    those of Kueue of the job's namespace. Raises ClusterError where the cluster did not answer."""

    async def ask(kind: str, name: str) -> Manifest | None:
        async with slots.of((job.metadata.namespace, job.metadata.name), f"Get {kind}"):
            return await cluster.get(kind, job.metadata.namespace if kind in kueue.NAMESPACED else None, name)

    found = await _answers([ask(kind, name) for kind, name in wanted])
    return replace(children, read={**children.read, **dict(zip(wanted, found, strict=True))})


async def _answers(asked: Sequence[Coroutine[Any, Any, Manifest | None]]) -> list[Manifest | None]:
    """What each of these comes to. Raises the first error, and ends the others then: who tries again asks anew."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:  # no TaskGroup: Python 3.11's loses a cancellation that comes while it ends the others
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _is_ours(job: Job, pod: Manifest) -> bool:
    facts = facts_of(pod)
    return facts.controller == job.metadata.uid and facts.task_id is not None
