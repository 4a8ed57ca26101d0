# SPDX-License-Identifier: Apache-2.0
"""Creation: creates in three groups: what pods need, then pods, then what may fail alone.

Pods of each role are made in batches of 1, 2, 4, …, as the Job controller makes them. Alone are repairs of objects that
are there, and Workloads of Kueue: where one is refused, the others and all pods are made.

If a pod is refused, the pods of its role that were not tried yet wait with it. A quota that refuses one pod refuses
four hundred. After a while one of them is tried again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from dtjob.controller.call_summary import CallSummary
from dtjob.controller.cluster import AlreadyExists, Cluster, ClusterError, JobKey, Refused, Stale
from dtjob.controller.pace.backoff import Holds
from dtjob.controller.pace.slots import CALLS_OF_A_JOB, Slots
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.objects import drift, kueue, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create, Repair
from dtjob.plan.seen.children import deleting

Made = TypeVar("Made", bound="Create | Repair")
Make = Create | Repair
"""An object that is to be as its manifest says."""

logger = logging.getLogger(__name__)

TRIES_BEFORE_SAID = 8
"""A call that failed so often in a row (for about 25 s) is said in the job's status: a user may have to act."""
TRIES_BEFORE_MISSING_SAID = 4
"""The same for an answer that names an object that is missing (after about 3 s)."""
LOOKS_BEFORE_SAID = 6
"""What is in the way for so many looks (30 s, a pod's usual grace) is said too."""


@dataclass(frozen=True)
class Means:
    """What all plans are carried out with. `slots` are the calls that may be under way over all jobs."""

    cluster: Cluster
    store: Store
    queue: WorkQueue[JobKey]
    clock: Callable[[], datetime]
    slots: Slots = field(default_factory=Slots)


class Held(Exception):
    """An object cannot be made, or put right, for now. The message says why.

    `blocker`: the uid of an object of an earlier job that has its name and is being deleted. `stands`: it is there, and
    only putting it right failed. `lasts`: this does not go away by itself.
    """

    def __init__(self, message: str, *, blocker: str = "", stands: bool = False, lasts: bool = False) -> None:
        super().__init__(message)
        self.blocker, self.stands, self.lasts = blocker, stands, lasts


@dataclass
class Outcome:
    """What a batch of creates came to: what was made, what was refused with the cluster's words, and other errors."""

    made: set[str] = field(default_factory=set)
    refused: list[tuple[Make, str]] = field(default_factory=list)
    errors: list[ClusterError] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether to go on is in vain for now."""
        return bool(self.refused or self.errors)


class Creation:
    """Makes objects of one job, as one plan asks for them. What became of them goes into `summary`."""

    def __init__(self, means: Means, key: JobKey, uid: str, summary: CallSummary) -> None:
        """`key` and `uid` are the job's."""
        self._means, self._key, self._uid, self._summary = means, key, uid, summary
        self._cluster, self._store, self._queue = means.cluster, means.store, means.queue

    def is_due(self, makes: Sequence[Make]) -> bool:
        """Whether a new object is to be made now, and not only later."""
        memory, creates = self._store.memory(self._key), [one for one in makes if isinstance(one, Create)]
        if memory.made_for != self._uid:
            return bool(creates)
        return any(memory.holds.of(one.role).until <= _now() for one in self._due(creates))

    async def make(self, makes: Sequence[Make], wanted: Sequence[Make]) -> None:
        """Make what may be tried now of what is `wanted`. Raises the first error that may pass, when all calls have
        ended.

        What was refused is said in the store's problems, and makes the job due when it may be tried again.
        """
        memory = self._store.memory(self._key)
        if memory.made_for != self._uid:  # calls that were under way for another job of this name may have told of it
            memory.made_for, memory.holds = self._uid, Holds()
        needed, roles, alone = in_groups(makes)
        self._holds.keep({what_of(one) for one in wanted} | in_groups(wanted)[1].keys())
        try:
            with self._means.slots.calls(self._key, len(makes)):
                outcomes = [await self._each(self._due(needed))]
                self._say(outcomes[0])
                # Without its Service or NetworkPolicy a pod would run unnamed or unprotected.
                missing = [one for one in needed if self._is_held(one) and not self._holds.of(what_of(one)).stands]
                if not outcomes[0] and not missing:
                    of_roles = (self._make_role(role, some) for role, some in roles.items())
                    outcomes += await asyncio.gather(*of_roles)
                outcomes.append(await self._each(self._due(alone), alone=True))
                self._say(outcomes[-1])
        finally:
            wait = self._holds.next_try(_now())
            if wait is not None:
                self._queue.add_after(self._key, wait)
        if errors := [error for outcome in outcomes for error in outcome.errors]:
            raise errors[0]

    async def _make_role(self, role: str, pods: Sequence[Create]) -> Outcome:
        """Make the pods of one role until one is refused; the others wait with it."""
        outcome = Outcome()
        if self._holds.of(role).until > _now():
            return outcome
        due, made, size = self._due(pods), 0, 1
        while made < len(due) and self._is_wanted():
            if outcome := await self._each(due[made : made + size]):
                break
            made, size = made + size, 2 * size
        if outcome.refused:
            self._holds.hold(role, _now())
            self._say_of_role(due[made:], outcome)
        else:
            self._holds.lift(role)
        return outcome

    def _say(self, outcome: Outcome) -> None:
        """Say why each of these was refused, and try it again later."""
        for create, why in outcome.refused:
            self._holds.hold(what_of(create), _now())
            self._set_problem(create, why)

    def _say_of_role(self, pods: Sequence[Create], outcome: Outcome) -> None:
        """Say why the first of these was refused, and how many wait with it: one message and not four hundred."""
        refused = {what_of(create): why for create, why in outcome.refused}
        waiting = [one for one in self._due(pods) if what_of(one) not in outcome.made]
        first, *others = sorted(waiting, key=lambda create: what_of(create) not in refused)
        more = f" ({len(others)} more such {'pod waits' if len(others) == 1 else 'pods wait'})" if others else ""
        self._set_problem(first, refused[what_of(first)] + more)
        for create in others:
            self._set_problem(create, None)

    async def _each(self, creates: Sequence[Make], *, alone: bool = False) -> Outcome:
        """Make these at once, as many as the job may have under way. No more after a failure, unless each is `alone`:
        nothing else waits for it."""
        outcome, iterator = Outcome(), iter(creates)

        async def lane() -> None:
            for create in iterator:
                try:
                    async with self._means.slots.of(self._key, f"{type(create).__name__} {create.kind}") as slot:
                        in_vain = outcome and not alone
                        if in_vain or not self._is_wanted():  # or it would be asked for in vain, once it has a slot
                            slot.used = False
                            return
                        if await self._one(create):
                            outcome.made.add(what_of(create))
                except Refused as error:
                    outcome.refused.append((create, str(error)))
                except ClusterError as error:
                    outcome.errors.append(error)
                if outcome and not alone:
                    return

        await asyncio.gather(*(lane() for _ in creates[:CALLS_OF_A_JOB]))
        return outcome

    async def _one(self, create: Make) -> bool:
        """Make one object; whether it stands. One whose name is taken, or that stands and cannot be put right, is held
        for itself; Refused and what may pass are raised."""
        what = what_of(create)
        try:
            if isinstance(create, Repair):
                return await self._repair(create)
            stored = await self._stored(create)
        except Held as error:
            self._holds.hold(what, _now(), blocker=error.blocker, stands=error.stands)
            if error.lasts or self._holds.of(what).tries >= LOOKS_BEFORE_SAID:
                self._set_problem(create, str(error))
            return error.stands
        except Refused:
            raise
        except ClusterError as error:
            tries = TRIES_BEFORE_MISSING_SAID if error.names_missing else TRIES_BEFORE_SAID
            if self._queue.failures(self._key) >= tries:
                self._note_problem(create, str(error))  # the next try writes it
            raise
        else:
            self._holds.lift(what)
            self._set_problem(create, None)
            # No watch event will say what is known here already; the status still has to say that all were created.
            if self._store.apply(stored) is not None:
                self._queue.add(self._key)
            return True

    async def _repair(self, action: Repair) -> bool:
        """Put an object right, unless that was done too often lately."""
        now, what, memory = self._means.clock(), (action.kind, action.name), self._store.memory(self._key)
        if wait := memory.repairs.wait(what, now):
            self._queue.add_after(self._key, wait.total_seconds())
            return True
        said = "%s/%s: repairing %s %s: %s is not as it should be"
        logger.info(said, *self._key, action.kind, action.name, action.field)
        stored = await self._cluster.repair(action.manifest, action.there["metadata"]["uid"])
        self._holds.lift(what_of(action))
        self._set_problem(action, None)
        if stored is None:
            self._store.remove(action.there)
        else:
            memory.repairs.note(what, now)
            self._summary.repaired(action.kind, action.name, action.field)
            self._store.apply(stored)
        # What is stored now may differ as before, which is no news to the store: somebody wants it otherwise.
        self._queue.add(self._key)
        return True

    async def _stored(self, create: Create) -> Manifest:
        """The object as stored, be it made now or there already as ours."""
        wanted = built(create)
        try:
            stored = await self._cluster.create(wanted)
            self._summary.created(create.kind, create.name, again=create.again)
            return stored
        except AlreadyExists as error:
            found = error.existing
        if "deletionTimestamp" in found["metadata"] or is_of_an_earlier_job(wanted, found):
            message = f"an earlier {create.kind} {create.name} is still being deleted"
            raise Held(message, blocker=found["metadata"]["uid"])
        # The same owner's is what this create would have made: a pod's name says which attempt it is.
        uid = labels.of(wanted).get(labels.JOB_UID) if create.kind == shared.CLAIM else labels.controller_uid(wanted)
        if not shared.is_of(found, self._key[1], uid):
            instead = "mount it with checkpoint.storage.volume" if create.kind == shared.CLAIM else "delete it"
            message = f"{create.kind} {create.name} exists and is not this job's; {instead} or rename the job"
            raise Held(message, lasts=True)
        try:
            return await self._put_right(wanted, found)
        except Stale:
            raise
        except ClusterError as error:
            raise Held(str(error), stands=True, lasts=isinstance(error, Refused)) from error

    async def _put_right(self, wanted: Manifest, found: Manifest) -> Manifest:
        """An object of ours that was there already, with what it should have."""
        kind, name = wanted["kind"], found["metadata"]["name"]
        if kind in drift.SHARED_KINDS and (field := drift.drifted(wanted, found)):
            await self._repair(Repair(wanted, found, field))
        if kind not in ("Pod", kueue.KIND) or labels.JOB_NAME in labels.of(found):
            return found
        if kind == "Pod":  # as the plan does with one that it finds
            await self._cluster.delete(kind, self._key[0], name, found["metadata"]["uid"])
        message = f"{kind} {name} has lost the label {labels.JOB_NAME}; delete it, and it is created again"
        raise Held(message, lasts=kind != "Pod")

    @property
    def _holds(self) -> Holds:
        return self._store.memory(self._key).holds

    def _is_wanted(self) -> bool:
        """Whether the job is still there and not suspended meanwhile: thousands of pods take a while to make."""
        return (job := self._job()) is not None and not deleting(job) and not job["spec"].get("suspend")

    def _job(self) -> Manifest | None:
        """The job that the calls under way are for; None if it is gone, and where another has its name."""
        job = self._store.job(self._key)
        return job if job is not None and job["metadata"]["uid"] == self._uid else None

    def _due(self, creates: Sequence[Made]) -> list[Made]:
        return [create for create in creates if not self._is_held(create)]

    def _is_held(self, create: Make) -> bool:
        hold = self._holds.of(what_of(create))
        return hold.until > _now() and not (hold.blocker and self._store.is_gone(hold.blocker))

    def _set_problem(self, create: Make, why: str | None) -> None:
        if self._note_problem(create, why):
            self._queue.add(self._key)

    def _note_problem(self, create: Make, why: str | None) -> bool:
        """Note why the object could not be made, or with None that it could; whether that is new."""
        new = self._job() is not None and self._store.set_problem(self._key, what_of(create), why)
        if new and why is not None and isinstance(create, Create):
            self._summary.refused(create.kind, create.name, why)
        return new


def in_groups(makes: Sequence[Make]) -> tuple[list[Create], dict[str, list[Create]], list[Make]]:
    """What pods need, the pods by role, and what may fail alone."""
    needed: list[Create] = []
    roles: dict[str, list[Create]] = {}
    alone: list[Make] = []
    for one in makes:
        if isinstance(one, Repair) or one.kind == kueue.KIND:
            alone.append(one)
        elif one.kind == "Pod":
            roles.setdefault(one.role, []).append(one)
        else:
            needed.append(one)
    return needed, roles, alone


def what_of(create: Make) -> str:
    """What is to be made or repaired, as problems and holds name it."""
    return f"{create.kind}/{create.name}"


def _now() -> float:
    return asyncio.get_running_loop().time()


def built(create: Create) -> Manifest:
    """The object that is to be made. Raises Refused if its template has a value that the builder cannot use. Only
    another template helps, as with one that the API server refuses."""
    try:
        return create.manifest
    except Exception as error:
        logger.exception("%s %s cannot be built", create.kind, create.name)
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise Refused(f"the pod template has a value of another form than a pod's ({said})") from error


def is_of_an_earlier_job(wanted: Manifest, existing: Manifest) -> bool:
    """Whether it belongs to a job of the same name that was deleted, and which Kubernetes is about to collect."""
    same_name = labels.of(existing).get(labels.JOB_NAME) == labels.of(wanted).get(labels.JOB_NAME)
    owner = labels.controller_uid(existing)
    ours_once = labels.of(existing).get(labels.JOB_UID) == owner
    return same_name and ours_once and owner not in (None, labels.controller_uid(wanted))
