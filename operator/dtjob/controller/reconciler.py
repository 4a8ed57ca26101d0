# SPDX-License-Identifier: Apache-2.0
"""Reconciler: takes jobs from the queue, plans, and makes the calls of each plan. It decides the order of calls and
nothing else."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from dtjob.api.job import Job, is_ours
from dtjob.controller.call_summary import CallSummary
from dtjob.controller.cluster import Cluster, ClusterError, Gone, JobKey, Stale
from dtjob.controller.creation import TRIES_BEFORE_SAID, Creation, what_of
from dtjob.controller.invalid import BUG, BUGS_BEFORE_SAID, say_invalid, words_of, words_of_bug
from dtjob.controller.lookup import look_up
from dtjob.controller.nesting import TOO_DEEP, TOO_DEEP_MESSAGE
from dtjob.controller.observer import NOBODY, Observer, Result
from dtjob.controller.pace.pace import progress_every
from dtjob.controller.pace.slots import CALLS_OF_A_JOB, Slots
from dtjob.controller.pace.status_delay import StatusDelay
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.status_writer import StatusWriter
from dtjob.controller.store import Store
from dtjob.objects import kueue, labels, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Action, Create, Delete, Event, PatchWorkload, Plan, Relabel, Repair, StopServing
from dtjob.plan.plan import plan
from dtjob.plan.queueing.remote import runs_elsewhere
from dtjob.plan.seen.children import Children, PodEvent, Unread
from dtjob.plan.urgency import begins

logger = logging.getLogger(__name__)

Call = Delete | StopServing | Relabel | PatchWorkload
"""An action on an object that is there."""

STALE_BEFORE_SAID = 5
"""Conflicts in a row, within about 3 s, that are nothing unusual."""
LOOK_AGAIN_SECONDS = 1.0
"""After this a job is looked at again of which a pod had gone before a call reached it."""


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
        self._clock = clock
        self._defaults = defaults
        self._observer = observer
        self._slots = Slots()
        self._status_delay = status_delay or StatusDelay()
        self._creation = Creation(cluster, store, queue, self._slots, clock)

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
            await say_invalid(self._cluster, self._store, manifest, TOO_DEEP_MESSAGE, self._clock())
            return None
        ours = is_ours(manifest["spec"])
        if not ours and not runs_elsewhere(manifest["spec"]):
            return None
        try:
            job = self._store.read_job(key)
        except ValidationError as error:
            if ours:
                await say_invalid(self._cluster, self._store, manifest, words_of(error), self._clock())
            return None
        return await self._bring_about(key, job, manifest)

    async def _bring_about(self, key: JobKey, job: Job, manifest: Manifest) -> Plan:
        now = self._clock()
        await self._statuses.catch_up(self._store.memory(key), manifest)
        decided, children = await self._decide(key, job, now)
        begun = begins(job, children, decided) and not self._queue.failures(key)
        if begun:
            await self._act(key, job, manifest, decided)
            there = self._store.children(key)
            if there.objects or there.problems:
                self._queue.add(key)
                return decided  # or else nothing came of it: what is in the way may be so for long, and is to be said
        put_off = decided.status is not None and self._put_off(key, job, decided)
        if decided.status is not None and not put_off:
            manifest = await self._statuses.write(self._store.memory(key), manifest, decided.status, decided.events)
            self._store.apply(manifest)
        else:
            if self._creation.is_due(key, job.metadata.uid, _makes(decided.actions)):
                await self._statuses.confirm(manifest)
            for event in decided.events:
                await self._cluster.emit(manifest, event)
        # A status that is put off says nothing yet. If many jobs begin at once, most of their pods run by then.
        events_of = "" if put_off else decided.events_of
        if decided.look_again_at is not None:  # also where a call fails, which is tried again ever later
            self._queue.add_after(key, (decided.look_again_at - now).total_seconds())
        if not begun:
            await self._act(key, job, manifest, decided)
        if events_of:
            await self._read_events(key, events_of)
        return decided

    async def _read_events(self, key: JobKey, pod_uid: str) -> None:
        """Read a pod's own events, and have the job looked at again. Best effort: without the right to read them the
        status says less."""
        try:
            async with self._slots.of(key, "List Event"):
                text = await self._cluster.warning_about(key[0], pod_uid)
        except ClusterError as error:
            logger.info("%s/%s: the events of a pod cannot be read: %s", *key, error)
            text = ""
        self._store.set_pod_event(key, PodEvent(pod_uid, self._clock(), text))
        self._queue.add(key)

    async def _decide(self, key: JobKey, job: Job, now: datetime) -> tuple[Plan, Children]:
        """The plan, and what it was made from: what it has to know besides is read first, each object once."""
        children = self._store.children(key)
        defaults = replace(self._defaults, progress_every=progress_every(self._store.jobs_going_on()))
        while True:
            try:
                return plan(job, children, now, defaults), children
            except Unread as unread:
                children = await look_up(self._cluster, self._slots, job, children, unread)

    def _put_off(self, key: JobKey, job: Job, decided: Plan) -> bool:
        """Whether the status is left to a later look, which is asked for here."""
        now, first = asyncio.get_running_loop().time(), not job.status.get("phase")
        wait = self._status_delay.wait(key, now, self._queue.at_hand, first)
        if decided.may_wait and wait:
            self._queue.add_after(key, wait)
            return True
        self._status_delay.forget(key)
        return False

    async def _act(self, key: JobKey, job: Job, manifest: Manifest, decided: Plan) -> None:
        """Carry the plan out, and emit Events about what was done, however far it came."""
        self._store.memory(key).summary = CallSummary()
        try:
            await self._carry_out(key, job, decided.actions)
        finally:
            for event in self._store.memory(key).summary.events():
                await self._cluster.emit(manifest, event)

    async def _carry_out(self, key: JobKey, job: Job, actions: Iterable[Action]) -> None:
        """Out of service, then away, then what is to be made, then labels, then what Kueue is told; each group at once.

        What fails in one group holds up no other: a pod is replaced though a webhook lets no other pod be deleted. Only
        the successor of a pod that is still in service waits, as both would have one host name. Raises the first error
        when all have ended.
        """
        actions = list(actions)
        if self._store.keep_problems(key, {_what(action) for action in actions}):
            self._queue.add(key)
        failed = await self._all(key, [action for action in actions if isinstance(action, StopServing)])
        serving = {_task_of(job, action.name) for action, _ in failed}
        failed += await self._all(key, [action for action in actions if isinstance(action, Delete)])
        errors = [error for _, error in failed]
        try:
            makes = [one for one in _makes(actions) if one.kind != "Pod" or _task_of(job, one.name) not in serving]
            await self._creation.make(key, job.metadata.uid, makes)
        except ClusterError as error:
            errors.append(error)
        for kind in (Relabel, PatchWorkload):
            failed = await self._all(key, [action for action in actions if isinstance(action, kind)])
            errors += [error for _, error in failed]
        if errors:
            raise next((error for error in errors if not isinstance(error, Stale)), errors[0])

    async def _all(self, key: JobKey, actions: Sequence[Call]) -> list[tuple[Call, ClusterError]]:
        """Make the calls, as many at once as the job may have under way; those that failed, when all have ended."""
        iterator = iter(actions)
        failed: list[tuple[Call, ClusterError]] = []

        async def lane() -> None:
            for action in iterator:
                try:
                    async with self._slots.of(key, type(action).__name__):
                        await self._call(key, action)
                except ClusterError as error:
                    failed.append((action, error))

        with self._slots.calls(key, len(actions)):
            await asyncio.gather(*(lane() for _ in actions[:CALLS_OF_A_JOB]))
        return failed

    async def _call(self, key: JobKey, action: Call) -> None:
        namespace, _ = key
        try:
            if isinstance(action, Delete):
                logger.info("%s/%s: deleting %s %s: %s", *key, action.kind, action.name, action.why)
                stored = await self._cluster.delete(action.kind, namespace, action.name, action.uid, action.version)
                if stored is not None and self._store.apply(stored):  # or the next plan would delete it once more
                    self._queue.add(key)
                # Else the next plan would delete the pod again, or begin with the admission of the Workload.
                gone = action.kind == kueue.KIND or (action.kind == "Pod" and stored is None)
                self._store.forget_deleted(key, action.kind, action.name, action.uid, gone=gone)
                if gone:
                    self._queue.add(key)
                self._store.memory(key).summary.deleted(action.kind, action.name)
            elif isinstance(action, Relabel | PatchWorkload):
                await self._change(key, action)
            else:
                stored = await self._cluster.relabel(namespace, action.name, action.uid, {labels.SERVING: None})
                if stored is not None and self._store.apply(stored):  # or the next plan would do it once more
                    self._queue.add(key)
        except Stale:  # its newer version brings another plan
            raise
        except ClusterError as error:
            if self._queue.failures(key) >= TRIES_BEFORE_SAID:
                self._store.set_problem(key, _what(action), str(error))  # the next try writes it
            raise
        if self._store.set_problem(key, _what(action), None):
            self._queue.add(key)

    async def _change(self, key: JobKey, action: Relabel | PatchWorkload) -> None:
        """Make the change, unless it restores labels and that was done too often lately. What the call returns is newer
        than what the watch has told, such as that the pod is gone."""
        memory = self._store.memory(key)
        restored: dict[str, Any] = {}
        if isinstance(action, Relabel) or action.repairs:
            restored = dict(action.labels if isinstance(action, Relabel) else action.body["metadata"]["labels"])
        if restored and (wait := memory.repairs.wait(action.uid, self._clock())):
            self._queue.add_after(key, wait.total_seconds())
            return
        if isinstance(action, Relabel):
            logger.info("%s/%s: restoring labels of Pod %s: %s", *key, action.name, ", ".join(sorted(action.labels)))
            stored = await self._cluster.relabel(key[0], action.name, action.uid, action.labels)
        else:
            logger.info("%s/%s: writing to Workload %s: %s", *key, action.name, action.why)
            stored = await self._cluster.patch_workload(key[0], action)
        if stored is None:  # of a pod that was asked for by name no watch tells that it has gone
            self._queue.add_after(key, LOOK_AGAIN_SECONDS)
            return
        if restored:
            memory.repairs.note(action.uid, self._clock())
            memory.summary.relabelled(stored["kind"], action.name, restored)
        self._store.apply(stored)
        self._queue.add(key)  # the labels may be as before, which is no news to the store


def _makes(actions: Iterable[Action]) -> list[Create | Repair]:
    return [action for action in actions if isinstance(action, Create | Repair)]


def _task_of(job: Job, pod: str) -> str | None:
    """The id of the task whose pod has this name; None for any other name."""
    return topology.named_attempt(job.metadata.name, pod)[0]


def _what(action: Action) -> str:
    """The call, for the status: an object that is to be made or repaired by its name only, anything else in words."""
    if isinstance(action, Create | Repair):
        return what_of(action)
    if isinstance(action, Delete):
        return f"deleting {action.kind}/{action.name}"
    if isinstance(action, PatchWorkload):
        return f"updating Workload/{action.name}"
    if isinstance(action, Relabel):
        return f"labelling Pod/{action.name}"
    return f"taking Pod/{action.name} out of service"
