"""Whether the jobs' ConfigMaps are still there, asked for by name.

Kubernetes cannot hold a right to list or watch to a label, so watching these would take the right to read every
ConfigMap of the cluster. Their names are known, and a running pod has what it needs of its own already: only a pod
that is about to start misses one. So all are looked at now and then, those of jobs with such pods first, less often
while there is much to do, and never more than so many a second. What they hold is never read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping

from pydantic import ValidationError

from dtjob.api.phase import ENDED
from dtjob.api.stored_job import stored_job
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.kube.api_error import ApiError
from dtjob.kube.client import Kube
from dtjob.objects import drift, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import node_of
from dtjob.plan.pod_facts import facts_of
from dtjob.plan.workers import as_it_is

logger = logging.getLogger(__name__)

KIND = "ConfigMap"
ROUND_SECONDS = 3.0
"""How often is looked whose turn it is."""
TURN_SECONDS = 20.0
"""How often a job's turn comes; first that of jobs of which a pod has a node and does not run yet. A kubelet that
misses the ConfigMap tries again ever less often, by then as seldom as this; and pods that start within that time, as
most do, cost no call."""
MUCH = 3
"""Jobs that are due or looked at: a thousand that run well seldom have more than one of these at a time."""
IF_BUSY = 4.0
"""So many times as long it is while more than a few jobs are at hand, whose pods take longer to start, too."""
MOST_A_ROUND, MOST_OTHERS = 30, 6
"""Calls in one round, and those of them for jobs of which no pod starts: 10 and 2 a second, however many jobs there
are. With more, turns come later."""
AT_ONCE = 10


class ConfigMaps:
    """Asks through `kube`, and keeps `store` true to what is there; what changed goes into `queue`."""

    def __init__(
        self, kube: Kube, store: Store, queue: WorkQueue[JobKey], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kube, self._store, self._queue, self._clock = kube, store, queue, clock
        self._asked: dict[JobKey, float] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def look_for_unknown(self) -> None:
        """Take in the ConfigMaps of unfinished jobs of which none is known, as after a start.

        One that cannot be read is left unknown, as is one of a job that was not looked at yet: its job makes it, and
        hears then that it is there.
        """
        begun = (key for key in going_on(self._store) if _has_begun(self._store, key))
        keys = [key for key in begun if known(self._store, key) is None]
        try:
            await self._ask_all((key, name) for key in keys if (name := name_of(self._store.job(key))) is not None)
        except ClusterError as error:
            logger.warning("not all ConfigMaps of jobs can be read: %s", error)

    async def poll_forever(self, every_seconds: float = ROUND_SECONDS) -> None:
        """Look, round after round. An API server that does not answer says nothing about what is there."""
        while True:
            await asyncio.sleep(every_seconds)
            try:
                await self.look()
            except ClusterError as error:
                logger.debug("ConfigMaps were not looked at: %s", error)
            except Exception:  # whatever one job is like, the operator goes on for the others
                logger.exception("a bug in dtjob; ConfigMaps are looked at again in %.0f s", every_seconds)

    async def look(self) -> None:
        """One round. Raises ClusterError."""
        now = self._clock()
        keys = due(self._store, self._asked, now, busy=self._queue.at_hand > MUCH)
        self._asked = {key: self._asked.get(key, now) for key in going_on(self._store)} | dict.fromkeys(keys, now)
        there = ((key, known(self._store, key)) for key in keys)
        await self._ask_all((key, one["metadata"]["name"]) for key, one in there if one is not None)

    async def _ask_all(self, named: Iterable[tuple[JobKey, str]]) -> None:
        answers = await asyncio.gather(*(self._ask(key, name) for key, name in named), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _ask(self, key: JobKey, name: str) -> None:
        before = known(self._store, key)
        async with self._slots:
            try:
                found = await self._kube.get_metadata(KIND, key[0], name)
            except ApiError as error:
                if error.code == 403:  # the namespace is going, and our role in it with it
                    return
                raise
        changed = None
        if found is not None:
            changed = self._store.apply(drift.labelled(found, {labels.JOB_NAME: key[1]}))
        elif before is not None:
            changed = self._store.remove(before)
        if changed is not None:
            self._queue.add(changed)


def going_on(store: Store) -> list[JobKey]:
    """The jobs that have not ended and are not being deleted."""
    return [key for key in store.job_keys() if (job := store.job(key)) is not None and _goes_on(job)]


def due(store: Store, asked: Mapping[JobKey, float], now: float, *, busy: bool = False) -> list[JobKey]:
    """The jobs whose turn it is at `now`, those with pods about to start first, each by how long ago it was asked;
    `busy`: whether there is much else to do."""
    after = TURN_SECONDS * (IF_BUSY if busy else 1.0)
    starting, others = list[tuple[float, JobKey]](), list[tuple[float, JobKey]]()
    for key in going_on(store):
        since = now - asked.get(key, now)
        if since >= after:
            (starting if _starts_pods(store, key) else others).append((-since, key))
    turns = [*sorted(starting), *sorted(others)[:MOST_OTHERS]]
    return [key for _, key in turns[:MOST_A_ROUND]]


def known(store: Store, key: JobKey) -> Manifest | None:
    """The ConfigMap of the job as last seen, None where none is known. One of other numbers of workers does not count,
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
    """The name of a job's ConfigMap, None where this version cannot read the job."""
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


def _starts_pods(store: Store, key: JobKey) -> bool:
    """Whether a pod of the job has a node and does not run there yet. Only where the job's status says that a task is
    pending are its pods looked at, which may be thousands."""
    roles = (((store.job(key) or {}).get("status") or {}).get("replicaStatuses") or {}).values()
    if not any(isinstance(role, dict) and role.get("pending") for role in roles):
        return False
    pods = (one for one in store.children(key).objects if one["kind"] == "Pod" and node_of(one))
    return any(facts_of(pod).phase in (None, "Pending") for pod in pods)
