"""Queue → plan → calls. Decides nothing: order, concurrency and what a failed call means are all that lives here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeGuard

from pydantic import ValidationError

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.controller.cluster import AlreadyExists, Cluster, ClusterError, JobKey, Refused, Stale
from dtjob.controller.mending import Mending
from dtjob.controller.observer import NOBODY, Observer, Result
from dtjob.controller.store import Store
from dtjob.controller.tally import Tally
from dtjob.controller.workqueue import WorkQueue
from dtjob.objects import drift, labels
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Action, Create, Delete, Event, Mend, Plan, StopServing
from dtjob.plan.plan import plan

logger = logging.getLogger(__name__)

CALLS_AT_ONCE = 50
"""Calls under way over all jobs: about what one API server takes without queueing."""

RETRY_PROBLEM_SECONDS = 15.0
"""A refused object (a quota, a stranger's name) is tried again after this."""

TRIES_BEFORE_SAID = 8
"""A call that failed so often in a row (for about 25 s) is said in the job's status: the user may have to mend it."""


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
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._queue = queue
        self._clock = clock
        self._defaults = defaults
        self._observer = observer
        self._mending = Mending()
        self._tallies: dict[JobKey, Tally] = {}
        # FIFO: a big job has at most this many calls waiting, so a small one's are never far back in the line.
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def run(self, workers: int = 10) -> None:
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
            finally:
                self._queue.done(key)
            self._observer.reconciled(result, time.monotonic() - began)

    async def _try(self, key: JobKey) -> Result:
        """Reconcile, and have a job for which that failed come again."""
        try:
            await self.reconcile(key)
        except Stale:
            # The watch brings the newer version, and with it the key.
            self._queue.retry(key)
            return "stale"
        except ClusterError as error:
            seconds = self._queue.retry(key)
            logger.warning("%s/%s: %s; trying again in %.1f s", *key, error, seconds)
            return "failed_call"
        except Exception:
            seconds = self._queue.retry(key)
            logger.exception("%s/%s: a bug in dtjob; trying again in %.1f s", *key, seconds)
            return "bug"
        self._queue.forget(key)
        return "success"

    async def reconcile(self, key: JobKey) -> Plan | None:
        """Plan for one job and carry the plan out; None where there is nothing to plan for.

        Raises ClusterError where a call failed in a way that may pass; the caller tries again.
        """
        manifest = self._store.job(key)
        if manifest is None or "deletionTimestamp" in manifest["metadata"]:
            return None
        try:
            job = Job.model_validate(manifest)
        except ValidationError as error:
            await self._report_invalid(manifest, error)
            return None
        now = self._clock()
        decided = plan(job, self._store.children(key), now, self._defaults)
        if decided.status is not None:
            manifest = await self._cluster.write_status(manifest, decided.status)
            self._store.apply(manifest)
            self._observer.status_written(job.status, decided.status)
        for event in decided.events:
            await self._cluster.emit(manifest, event)
        self._tallies[key] = Tally()
        try:
            await self._carry_out(key, decided.actions)
        except ClusterError:
            await self._tell(key, manifest)
            raise
        await self._tell(key, manifest)
        if decided.look_again_at is not None:
            self._queue.add_after(key, (decided.look_again_at - now).total_seconds())
        return decided

    async def _tell(self, key: JobKey, manifest: Manifest) -> None:
        """Record what was done, however far it came."""
        for event in self._tallies.pop(key).events():
            await self._cluster.emit(manifest, event)

    async def _report_invalid(self, manifest: Manifest, error: ValidationError) -> None:
        """Say in the status what an old manifest, let in by older rules, has that this version cannot run."""
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        message = f"{field}: {first['msg']}; delete the job and apply it again with this mended"
        old = manifest.get("status") or {}
        if old.get("reason") == "InvalidSpec" and old.get("message") == message:
            return
        status = {**old, "phase": old.get("phase", Phase.PENDING.value), "reason": "InvalidSpec", "message": message}
        self._store.apply(await self._cluster.write_status(manifest, status))
        await self._cluster.emit(manifest, Event("Warning", "InvalidSpec", message))

    async def _carry_out(self, key: JobKey, actions: Iterable[Action]) -> None:
        """Out of service, then away, then the objects that pods need, then pods; each group at once."""
        actions = list(actions)
        groups: list[list[Action]] = [
            [action for action in actions if isinstance(action, StopServing)],
            [action for action in actions if isinstance(action, Delete)],
            [action for action in actions if _is_shared(action)],
            [action for action in actions if isinstance(action, Create) and action.kind == "Pod"],
        ]
        if self._store.keep_problems(key, {_what(action) for action in actions}):
            self._queue.add(key)
        for group in groups:
            await self._all(key, group)
            if any(self._store.problem(key, _what(one)) for one in group if _is_shared(one)):
                # Without its Service or NetworkPolicy a pod would run unnamed or unprotected.
                return

    async def _all(self, key: JobKey, actions: Sequence[Action]) -> None:
        """Make the calls, at most CALLS_AT_ONCE of this job waiting for a slot; raise the first error when all have
        ended."""
        iterator = iter(actions)
        errors: list[BaseException] = []

        async def lane() -> None:
            for action in iterator:
                try:
                    async with self._slots:
                        await self._call(key, action)
                except ClusterError as error:
                    errors.append(error)

        await asyncio.gather(*(lane() for _ in actions[:CALLS_AT_ONCE]))
        if errors:
            raise errors[0]

    async def _call(self, key: JobKey, action: Action) -> None:
        try:
            problem = await self._make(key, action)
        except ClusterError as error:
            if self._queue.failures(key) >= TRIES_BEFORE_SAID:
                self._note_problem(key, action, str(error))  # the next try writes it
            raise
        if self._note_problem(key, action, problem):
            self._queue.add(key)

    def _note_problem(self, key: JobKey, action: Action, why: str | None) -> bool:
        """Note why the call failed, or with None that it did not; whether that is new."""
        new = self._store.set_problem(key, _what(action), why)
        if new and why is not None and isinstance(action, Create):
            self._tallies[key].refused(action.kind, action.name, why)
        return new

    async def _make(self, key: JobKey, action: Action) -> str | None:
        """Make the call; why an object was refused, None where it was not."""
        namespace, _ = key
        if isinstance(action, Create):
            return await self._create(key, action)
        if isinstance(action, Delete):
            logger.info("%s/%s: deleting %s %s: %s", *key, action.kind, action.name, action.why)
            await self._cluster.delete(action.kind, namespace, action.name, action.uid)
            self._tallies[key].deleted(action.kind, action.name)
        elif isinstance(action, Mend):
            return await self._mend(key, action)
        else:
            await self._cluster.stop_serving(namespace, action.name, action.uid)
        return None

    async def _create(self, key: JobKey, action: Create) -> str | None:
        problem: str | None = None
        try:
            stored = await self._cluster.create(action.manifest)
            self._tallies[key].created(action.kind, action.name)
        except AlreadyExists as error:
            stored = error.existing
            if "deletionTimestamp" in stored["metadata"] or _is_of_an_earlier_job(action.manifest, stored):
                raise ClusterError(f"an earlier {action.kind} {action.name} is still being deleted") from None
            if not _is_ours(action.manifest, stored):
                problem = f"{action.kind} {action.name} exists and is not this job's; delete it or rename the job"
            elif action.kind in drift.SHARED_KINDS and (field := drift.drifted(action.manifest, stored)):
                return await self._mend(key, Mend(action.manifest, stored, field))
        except Refused as error:
            problem = str(error)
        if problem is None:
            # No watch event will say what is known here already; the status still has to say that all were created.
            if action.kind in drift.SHARED_KINDS:
                stored = drift.labelled(stored, labels.of(action.manifest))  # a ConfigMap may have lost them
            if self._store.apply(stored) is not None:
                self._queue.add(key)
        else:
            self._queue.add_after(key, RETRY_PROBLEM_SECONDS)
        return problem

    async def _mend(self, key: JobKey, action: Mend) -> str | None:
        """Put an object right, unless that was done too often lately; why that was refused, None where it was not."""
        now, what = self._clock(), (key, action.kind, action.name)
        if wait := self._mending.wait(what, now):
            self._queue.add_after(key, wait.total_seconds())
            return None
        logger.info("%s/%s: mending %s %s: %s is not as it should be", *key, action.kind, action.name, action.field)
        try:
            stored = await self._cluster.mend(action.manifest, action.there["metadata"]["uid"])
        except Refused as error:
            self._queue.add_after(key, RETRY_PROBLEM_SECONDS)
            return str(error)
        if stored is not None:
            self._mending.note(what, now)
            self._tallies[key].mended(action.kind, action.name, action.field)
        if (self._store.remove(action.there) if stored is None else self._store.apply(stored)) is not None:
            self._queue.add(key)
        return None


def _what(action: Action) -> str:
    """The call, for the status: an object that is to be made or mended by its name only, anything else in words."""
    if isinstance(action, Create | Mend):
        return f"{action.kind}/{action.name}"
    if isinstance(action, Delete):
        return f"deleting {action.kind}/{action.name}"
    return f"taking Pod/{action.name} out of service"


def _is_shared(action: Action) -> TypeGuard[Create | Mend]:
    return isinstance(action, Create | Mend) and action.kind != "Pod"


def _is_of_an_earlier_job(wanted: Manifest, existing: Manifest) -> bool:
    """Whether it belongs to a job of the same name that was deleted, and which Kubernetes is about to collect."""
    same_name = labels.of(existing).get(labels.JOB_NAME) == labels.of(wanted).get(labels.JOB_NAME)
    owner = labels.controller_uid(existing)
    ours_once = labels.of(existing).get(labels.JOB_UID) == owner
    return same_name and ours_once and owner not in (None, labels.controller_uid(wanted))


def _is_ours(wanted: Manifest, existing: Manifest) -> bool:
    """Whether an object that was there already is the one that this create would have made (same owner, same
    attempt)."""
    same_owner = labels.controller_uid(existing) == labels.controller_uid(wanted)
    return same_owner and labels.of(existing).get(labels.ATTEMPT) == labels.of(wanted).get(labels.ATTEMPT)
