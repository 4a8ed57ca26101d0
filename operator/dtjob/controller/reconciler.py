# SPDX-License-Identifier: Apache-2.0
"""Reconciler: takes jobs from the queue, plans, and makes the calls of each plan. It decides the order of calls and
nothing else."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from dtjob.api.job import Job, is_ours
from dtjob.controller.carrying import Carrying
from dtjob.controller.cluster import Cluster, ClusterError, Gone, JobKey, Stale
from dtjob.controller.creation import Means
from dtjob.controller.invalid import BUG, BUGS_BEFORE_SAID, say_invalid, words_of, words_of_bug
from dtjob.controller.observer import NOBODY, Observer, Result
from dtjob.controller.pace.pace import StatusDelay, progress_every
from dtjob.controller.pace.slots import Slots
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.status_writer import StatusWriter
from dtjob.controller.store import Store
from dtjob.controller.stored_fields import TOO_DEEP, TOO_DEEP_MESSAGE
from dtjob.objects import kueue, shared
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Action, Create, Event, Plan
from dtjob.plan.order import Order, order_of
from dtjob.plan.plan import plan
from dtjob.plan.queueing.queueing import runs_elsewhere
from dtjob.plan.seen.children import Children, Key, PodEvent, Unread, facts_of

logger = logging.getLogger(__name__)

STALE_BEFORE_SAID = 5
"""Conflicts in a row, within about 3 s, that are nothing unusual."""


class Reconciler:
    """Brings jobs to what they should be, one plan at a time for each job."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        queue: WorkQueue[JobKey],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        defaults: Defaults = NO_DEFAULTS,
        observer: Observer = NOBODY,
        status_delay: StatusDelay | None = None,
    ) -> None:
        self._cluster = cluster
        self._statuses = StatusWriter(cluster, observer)
        self._store = store
        self._queue = queue
        self._means = Means(cluster, store, queue, clock)
        self._defaults = defaults
        self._observer = observer
        self._status_delay = status_delay or StatusDelay()

    async def run(self, workers: int = 20) -> None:
        """Work on due jobs for ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            began = time.monotonic()
            try:
                result = await self._try(key)
            except asyncio.CancelledError:
                self._queue.add(key)  # for whoever works on after this one
                raise
            finally:
                self._queue.done(key)
            self._observer.reconciled(result, time.monotonic() - began)

    async def _try(self, key: JobKey) -> Result:
        """Reconcile, and have a job for which that failed come again."""
        try:
            await self.reconcile(key)
        except Stale as error:
            # The watch brings the newer version, and with it the key.
            seconds = self._queue.retry(key)
            if self._queue.failures(key) > STALE_BEFORE_SAID:  # it did not
                logger.warning("%s/%s: %s; looking again in %.1f s", *key, error, seconds)
            return "stale"
        except ClusterError as error:
            seconds = self._queue.retry(key, error.retry_after)
            logger.warning("%s/%s: %s; trying again in %.1f s", *key, error, seconds)
            return "failed_call"
        except Exception as error:
            seconds = self._queue.retry(key)
            logger.exception("%s/%s: a bug in dtjob; trying again in %.1f s", *key, seconds)
            if self._queue.failures(key) == BUGS_BEFORE_SAID and (manifest := self._store.job(key)) is not None:
                await self._cluster.emit(manifest, Event("Warning", BUG, words_of_bug(error)))
            return "bug"
        self._queue.forget(key)
        return "success"

    async def reconcile(self, key: JobKey) -> Plan | None:
        """Plan for one job and carry the plan out; None if there is nothing to plan for.

        Raises ClusterError where a call failed in a way that may pass; the caller tries again.
        """
        manifest = self._store.job(key)
        if manifest is None or "deletionTimestamp" in manifest["metadata"]:
            self._status_delay.forget(key)
            self._store.forget(key)
            return None
        try:
            return await self._plan_for(key, manifest)
        except Gone:  # no watch may tell of it: a job that is deleted between two LISTs brings no event
            self._store.remove(manifest)
            return None

    async def _plan_for(self, key: JobKey, manifest: Manifest) -> Plan | None:
        if manifest["spec"] == TOO_DEEP:
            await say_invalid(self._cluster, self._store, manifest, TOO_DEEP_MESSAGE, self._means.clock())
            return None
        ours = is_ours(manifest["spec"])
        if not ours and not runs_elsewhere(manifest["spec"]):
            return None
        try:
            job = self._store.read_job(key)
        except ValidationError as error:
            if ours:
                await say_invalid(self._cluster, self._store, manifest, words_of(error), self._means.clock())
            return None
        return await self._bring_about(key, job, manifest)

    async def _bring_about(self, key: JobKey, job: Job, manifest: Manifest) -> Plan:
        now = self._means.clock()
        await self._statuses.catch_up(self._store.memory(key), manifest)
        decided, children = await self._decide(key, job, now)
        carrying, wait = Carrying(self._means, key, job, decided.actions), self._wait(key, job, decided)
        failed = bool(self._queue.failures(key))
        order = order_of(job, children, decided, creates=carrying.creates, failed=failed, may_wait=wait > 0)
        if order is not Order.LATER:
            self._status_delay.forget(key)
        self._look_again(key, decided, now, done=False)
        match order:
            case Order.MAKE:
                await self._act(carrying, manifest)
                there = self._store.children(key)
                if there.objects or there.problems:
                    self._queue.add(key)  # the next look says what came of it
                else:  # what is in the way may be so for long
                    await self._write(key, manifest, decided)
                return decided
            case Order.CHECK:
                await self._statuses.confirm(manifest)
                await self._emit(manifest, decided.events)
            case Order.LATER:
                self._queue.add_after(key, wait)
            case Order.WRITE:
                manifest = await self._write(key, manifest, decided)
        await self._act(carrying, manifest)
        self._look_again(key, decided, now, done=True)
        # A status that is put off says nothing yet. If many jobs begin at once, most of their pods run by then.
        if decided.events_of and order is not Order.LATER:
            await self._read_events(key, decided.events_of)
            if decided.unless_there is not None:
                await self._make_again(job, manifest, decided.unless_there, decided.actions)
        return decided

    def _look_again(self, key: JobKey, decided: Plan, now: datetime, *, done: bool) -> None:
        """Have the job looked at again when its plan says: at once if the plan is `done`, and later in any case. A call
        that fails is tried again ever later, but not later than the plan says."""
        if decided.look_again_at is not None and done == (decided.look_again_at == now):
            self._queue.add_after(key, (decided.look_again_at - now).total_seconds())

    async def _write(self, key: JobKey, manifest: Manifest, decided: Plan) -> Manifest:
        """Write the status of the plan if it has one, and tell its Events. The job as stored then."""
        if decided.status is None:
            await self._emit(manifest, decided.events)
            return manifest
        stored = await self._statuses.write(self._store.memory(key), manifest, decided.status, decided.events)
        self._store.apply(stored)
        return stored

    async def _act(self, carrying: Carrying, manifest: Manifest) -> None:
        """Carry the plan out, and emit Events about what was done, however far it came."""
        try:
            await carrying.carry_out()
        finally:
            await self._emit(manifest, carrying.summary.events())

    async def _emit(self, manifest: Manifest, events: Iterable[Event]) -> None:
        for event in events:
            await self._cluster.emit(manifest, event)

    async def _read_events(self, key: JobKey, pod_uid: str) -> None:
        """Read a pod's own events, and have the job looked at again. Best effort: without the right to read them the
        status says less."""
        try:
            async with self._means.slots.of(key, "List Event"):
                text = await self._cluster.warning_about(key[0], pod_uid)
        except ClusterError as error:
            logger.info("%s/%s: the events of a pod cannot be read: %s", *key, error)
            text = ""
        self._store.set_pod_event(key, PodEvent(pod_uid, self._means.clock(), text))
        self._queue.add(key)

    async def _make_again(self, job: Job, manifest: Manifest, wanted: Create, beside: Sequence[Action]) -> None:
        """Make an object that a pod may wait for, if the cluster does not have it."""
        key = job.metadata.namespace, job.metadata.name
        async with self._means.slots.of(key, f"Get {wanted.kind}"):
            found = await self._cluster.get(wanted.kind, key[0], wanted.name)
        if found is None or not shared.is_of(found, job.metadata.name, job.metadata.uid):
            await self._act(Carrying(self._means, key, job, [wanted], beside), manifest)

    async def _decide(self, key: JobKey, job: Job, now: datetime) -> tuple[Plan, Children]:
        """The plan, and what it was made from: what it has to know besides is read first, each object once."""
        children = self._store.children(key)
        defaults = replace(self._defaults, progress_every=progress_every(self._store.jobs_going_on()))
        while True:
            try:
                return plan(job, children, now, defaults), children
            except Unread as unread:
                children = await look_up(self._cluster, self._means.slots, job, children, unread)

    def _wait(self, key: JobKey, job: Job, decided: Plan) -> float:
        """For how many seconds the status of this plan may wait; 0 if it may not."""
        if not decided.may_wait:
            return 0.0
        now, first = asyncio.get_running_loop().time(), not job.status.get("phase")
        return self._status_delay.wait(key, now, self._queue.at_hand, first)


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
    found: dict[Key, Manifest | None] = {}
    for what, one in answers:
        facts = facts_of(one) if one is not None and what[0] == "Pod" else None
        ours = facts is None or (facts.controller == job.metadata.uid and facts.task_id is not None)
        found[what] = one if ours else None
    pods = [one for (kind, _), one in found.items() if kind == "Pod" and one is not None]
    # By name, as the store has them: an object that it has under one of these is not ours.
    return replace(children, objects=(*children.objects, *pods), read={**children.read, **found})


async def _answers(asked: Sequence[Coroutine[Any, Any, Manifest | None]]) -> list[Manifest | None]:
    """What each of these comes to. Raises the first error, and ends the others then: who tries again asks anew."""
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:  # no TaskGroup: Python 3.11's loses a cancellation that comes while it ends the others
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
