# SPDX-License-Identifier: Apache-2.0
"""Lookup: asks the cluster for what a plan has to know and no watch shows."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from dtjob.api.job import Job
from dtjob.controller.cluster import Cluster
from dtjob.controller.pace.slots import Slots
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import Children, Unread
from dtjob.plan.seen.pod_facts import facts_of


async def look_up(cluster: Cluster, slots: Slots, job: Job, children: Children, unread: Unread) -> Children:
    """The children with the answers about what a plan has to know.

    - Pods: those of this very job that are there. The others are gone, or their owner says that they are no task of it.
    - Other objects: of the cluster, those of Kueue of the job's namespace, and the job's ConfigMap.

    Raises ClusterError where the cluster did not answer.
    """
    namespace, _ = key = job.metadata.namespace, job.metadata.name

    async def ask(kind: str, name: str) -> Manifest | None:
        async with slots.of(key, f"Get {kind}"):
            return await cluster.get(kind, namespace if kind in (*kueue.NAMESPACED, "ConfigMap", "Pod") else None, name)

    answers = zip(unread.objects, await _answers([ask(*one) for one in unread.objects]), strict=True)
    found = {(kind, name): one if kind != "Pod" or _is_ours(job, one) else None for (kind, name), one in answers}
    ours = [one for (kind, _), one in found.items() if kind == "Pod" and one is not None]
    # By name, as the store has them: an object that it has under one of these is not ours.
    return replace(children, objects=(*children.objects, *ours), read={**children.read, **found})


async def _answers(asked: Sequence[Coroutine[Any, Any, Manifest | None]]) -> list[Manifest | None]:
    """What each of these comes to. Raises the first error, and ends the others then: who tries again asks anew."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:  # no TaskGroup: Python 3.11's loses a cancellation that comes while it ends the others
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _is_ours(job: Job, pod: Manifest | None) -> bool:
    if pod is None:
        return False
    facts = facts_of(pod)
    return facts.controller == job.metadata.uid and facts.task_id is not None
