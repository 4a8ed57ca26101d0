# SPDX-License-Identifier: Apache-2.0
"""Carrying: makes the calls of one plan, in groups: out of service, away, made, told to Kueue."""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from dtjob.api.job import Job
from dtjob.controller.call_summary import CallSummary
from dtjob.controller.cluster import ClusterError, JobKey, Stale
from dtjob.controller.creation import TRIES_BEFORE_SAID, Creation, Means, what_of
from dtjob.controller.pace.slots import CALLS_OF_A_JOB
from dtjob.objects import kueue, topology
from dtjob.plan.actions import Action, Create, Delete, PatchWorkload, Repair, StopServing
from dtjob.plan.seen.children import ended

logger = logging.getLogger(__name__)

Call = Delete | StopServing | PatchWorkload
"""An action on an object that is there."""


class Carrying:
    """Carries out one plan for `job`. `beside`: actions of the plan that were carried out before. What is known of
    them stays."""

    def __init__(
        self, means: Means, key: JobKey, job: Job, actions: Iterable[Action], beside: Iterable[Action] = ()
    ) -> None:
        self._means, self._key, self._job, self._actions = means, key, job, list(actions)
        self._wanted = [*self._actions, *beside]
        self._cluster, self._store, self._queue = means.cluster, means.store, means.queue
        self.summary = CallSummary()
        """What was done, however far it came."""
        self._creation = Creation(means, key, job.metadata.uid, self.summary)

    @property
    def creates(self) -> bool:
        """Whether a new object is to be made now, and not only later."""
        return self._creation.is_due(_makes(self._actions))

    async def carry_out(self) -> None:
        """Out of service, then away, then what is to be made, then what Kueue is told; each group at once.

        What fails in one group holds up no other: a pod is replaced though a webhook lets no other pod be deleted.
        There are two exceptions. The successor of a pod that is still in service waits, as both would have one host
        name. If the deletion of a pod at work fails, the pod's successor waits until the status says so, as both would
        train. Raises the first error when all have ended.
        """
        actions = self._actions
        if self._store.keep_problems(self._key, {_what(action) for action in self._wanted}):
            self._queue.add(self._key)
        failed = await self._all([action for action in actions if isinstance(action, StopServing)])
        held = {self._task_of(action.name) for action, _ in failed}
        undeleted = await self._all([action for action in actions if isinstance(action, Delete)])
        failed += undeleted
        if undeleted and self._queue.failures(self._key) < TRIES_BEFORE_SAID:
            held |= self._tasks_at_work({action.name for action, _ in undeleted})
        errors = [error for _, error in failed]
        try:
            makes = (one for one in _makes(actions) if one.kind != "Pod" or self._task_of(one.name) not in held)
            await self._creation.make(list(makes), _makes(self._wanted))
        except ClusterError as error:
            errors.append(error)
        failed = await self._all([action for action in actions if isinstance(action, PatchWorkload)])
        errors += [error for _, error in failed]
        if errors:
            raise next((error for error in errors if not isinstance(error, Stale)), errors[0])

    async def _all(self, actions: Sequence[Call]) -> list[tuple[Call, ClusterError]]:
        """Make the calls, as many at once as the job may have under way; those that failed, when all have ended."""
        iterator = iter(actions)
        failed: list[tuple[Call, ClusterError]] = []

        async def lane() -> None:
            for action in iterator:
                try:
                    async with self._means.slots.of(self._key, type(action).__name__):
                        await self._call(action)
                except ClusterError as error:
                    failed.append((action, error))

        with self._means.slots.calls(self._key, len(actions)):
            await asyncio.gather(*(lane() for _ in actions[:CALLS_OF_A_JOB]))
        return failed

    async def _call(self, action: Call) -> None:
        namespace, _ = self._key
        try:
            if isinstance(action, Delete):
                logger.info("%s/%s: deleting %s %s: %s", *self._key, action.kind, action.name, action.why)
                stored = await self._cluster.delete(action.kind, namespace, action.name, action.uid, action.version)
                if stored is not None and self._store.apply(stored):  # or the next plan would delete it once more
                    self._queue.add(self._key)
                # Else the next plan would delete the pod again, or begin with the admission of the Workload.
                gone = action.kind == kueue.KIND or (action.kind == "Pod" and stored is None)
                self._store.forget_deleted(self._key, action.kind, action.name, action.uid, gone=gone)
                if gone:
                    self._queue.add(self._key)
                self.summary.deleted(action.kind, action.name)
            elif isinstance(action, PatchWorkload):
                logger.info("%s/%s: writing to Workload %s: %s", *self._key, action.name, action.why)
                self._store.apply(await self._cluster.patch_workload(namespace, action))
                self._queue.add(self._key)  # it may be as before, which is no news to the store
            else:
                stored = await self._cluster.stop_serving(namespace, action.name, action.uid)
                if stored is not None and self._store.apply(stored):  # or the next plan would do it once more
                    self._queue.add(self._key)
        except Stale:  # its newer version brings another plan
            raise
        except ClusterError as error:
            if self._queue.failures(self._key) >= TRIES_BEFORE_SAID:
                self._store.set_problem(self._key, _what(action), str(error))  # the next try writes it
            raise
        if self._store.set_problem(self._key, _what(action), None):
            self._queue.add(self._key)

    def _tasks_at_work(self, names: set[str]) -> set[str | None]:
        """The ids of the tasks of those pods of these names that have not ended."""
        pods = [one for one in self._store.children(self._key).objects if one["kind"] == "Pod" and not ended(one)]
        return {self._task_of(name) for pod in pods if (name := pod["metadata"]["name"]) in names}

    def _task_of(self, pod: str) -> str | None:
        """The id of the task whose pod has this name; None for any other name."""
        return topology.named_attempt(self._job.metadata.name, pod)[0]


def _makes(actions: Iterable[Action]) -> list[Create | Repair]:
    return [action for action in actions if isinstance(action, Create | Repair)]


def _what(action: Action) -> str:
    """The call, for the status: an object that is to be made or repaired by its name only, anything else in words."""
    if isinstance(action, Create | Repair):
        return what_of(action)
    if isinstance(action, Delete):
        return f"deleting {action.kind}/{action.name}"
    if isinstance(action, PatchWorkload):
        return f"updating Workload/{action.name}"
    return f"taking Pod/{action.name} out of service"
