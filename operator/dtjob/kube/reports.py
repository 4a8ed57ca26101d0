"""Reports: asks the supervisors of running jobs for their `/status`, which is where steps and checkpoints come
from."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from pydantic import ValidationError

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.api.replicas import Role
from dtjob.controller.cluster import JobKey
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import container_status

TIMEOUT = aiohttp.ClientTimeout(total=3)
AT_ONCE = 50


async def poll_forever(store: Store, queue: WorkQueue[JobKey], every_seconds: float) -> None:
    """Ask the chief and the evaluator of each job, round after round. An unreachable one is unknown, never a
    failure."""
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(timeout=TIMEOUT, connector=connector) as session:
        while True:
            await asyncio.gather(*(_ask(session, store, queue, *asked) for asked in supervisors_to_ask(store)))
            await asyncio.sleep(every_seconds)


def supervisors_to_ask(store: Store) -> list[tuple[JobKey, str, str]]:
    """Job, task id and URL of each supervisor to ask: the running chief's and evaluator's, of each job that goes on."""
    asked = []
    for key in store.job_keys():
        manifest = store.job(key)
        if manifest is None or (manifest.get("status") or {}).get("phase") in ENDED:
            continue
        try:
            job = Job.model_validate(manifest)
        except ValidationError:
            continue
        if job.spec.program is None:
            continue
        wanted = {topology.chief_task(job).id, f"{Role.EVALUATOR.value}-0"}
        for pod in store.children(key).owned(job, "Pod"):
            # Somebody may have taken our labels away.
            if labels.names_a_task(pod) and labels.task_id(pod) in wanted and (host := _running_at(pod)):
                url = f"http://{host}:{job.spec.network.status_port}/status"
                asked.append((key, labels.task_id(pod), url))
    return asked


def _running_at(pod: Manifest) -> str | None:
    """The pod's address as a URL's host, None while its training container does not run."""
    address: str | None = (pod.get("status") or {}).get("podIP")
    if address is None or "running" not in (container_status(pod).get("state") or {}):
        return None
    return f"[{address}]" if ":" in address else address


async def _ask(
    session: aiohttp.ClientSession, store: Store, queue: WorkQueue[JobKey], key: JobKey, task_id: str, url: str
) -> None:
    try:
        async with session.get(url) as response:
            report: Any = await response.json()
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return
    manifest = store.job(key)
    if manifest is None or not isinstance(report, dict) or report.get("jobUid") != manifest["metadata"]["uid"]:
        return
    if store.set_report(key, task_id, report):
        queue.add(key)
