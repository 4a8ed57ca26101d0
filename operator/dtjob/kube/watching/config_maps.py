# SPDX-License-Identifier: Apache-2.0
"""ConfigMaps of jobs that exist when the operator starts: they are read by name.

Kubernetes cannot hold a right to list or watch to a label, so watching these would take the right to read every
ConfigMap of the cluster. Their names are known. What they hold is never read.

Later on, a job's ConfigMap is asked for if one of its pods has a node and does not start
(`controller/reconciler.py`). A running pod has what it needs of its own.
"""

from __future__ import annotations

import asyncio
import logging

from pydantic import ValidationError

from dtjob.api.phase import ENDED
from dtjob.api.stored_job import stored_job
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.api_error import ApiError
from dtjob.kube.calls.client import Kube
from dtjob.objects import drift, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.situation import as_it_is

logger = logging.getLogger(__name__)

KIND = "ConfigMap"
AT_ONCE = 10


async def look_for_unknown(kube: Kube, store: Store, queue: WorkQueue[JobKey]) -> None:
    """Take in the ConfigMaps of unfinished jobs of which none is known, as after a start. What changed goes into
    `queue`.

    One that cannot be read is left unknown, as is one of a job that was not looked at yet: its job makes it, and
    hears then that it is there.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(key: JobKey, name: str) -> None:
        try:
            async with turns:
                found = await kube.get(KIND, key[0], name)
        except ApiError as error:
            if error.code == 403:  # the namespace is going, and our role in it with it
                return
            raise
        if found is not None and store.apply(drift.labelled(found, {labels.JOB_NAME: key[1]})) is not None:
            queue.add(key)

    begun = [key for key in going_on(store) if _has_begun(store, key) and known(store, key) is None]
    named = [(key, name) for key in begun if (name := name_of(store.job(key))) is not None]
    answers = await asyncio.gather(*(ask(key, name) for key, name in named), return_exceptions=True)
    for error in (one for one in answers if isinstance(one, BaseException)):
        if not isinstance(error, ClusterError):
            raise error
        logger.warning("a ConfigMap cannot be read: %s", error)


def going_on(store: Store) -> list[JobKey]:
    """The jobs that have not ended and are not being deleted."""
    return [key for key in store.job_keys() if (job := store.job(key)) is not None and _goes_on(job)]


def known(store: Store, key: JobKey) -> Manifest | None:
    """The ConfigMap of the job as last seen, None if none is known. One of other numbers of workers does not count,
    which an elastic job may have too."""
    job = store.job(key)
    mine = [
        one
        for one in store.children(key).objects
        if job is not None and one["kind"] == KIND and labels.controller_uid(one) == job["metadata"]["uid"]
    ]
    if not mine or "workers" not in ((job or {}).get("status") or {}):
        return next(iter(mine), None)
    name = name_of(job)
    return next((one for one in mine if one["metadata"]["name"] == name), None)


def name_of(manifest: Manifest | None) -> str | None:
    """The name of a job's ConfigMap, None if this version cannot read the job."""
    try:
        return None if manifest is None else shared.config_map_name(as_it_is(stored_job(manifest)))
    except ValidationError:
        return None


def _has_begun(store: Store, key: JobKey) -> bool:
    """Whether anything was made or written for the job."""
    return bool(store.size(key) or (store.job(key) or {}).get("status"))


def _goes_on(job: Manifest) -> bool:
    ended = (job.get("status") or {}).get("phase") in ENDED
    return not ended and "deletionTimestamp" not in job["metadata"]
