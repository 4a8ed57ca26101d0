# SPDX-License-Identifier: Apache-2.0
"""Reports: reads `/status` of the supervisors of running jobs. Silent ones do not delay the others.

A chief that accepts a connection and never answers costs a request for seconds. So no namespace has more than a share
of the requests under way. Silent supervisors have a share of their own, and are asked ever less often. New ones have a
share too, and wait for no silent one.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto

from pydantic import ValidationError

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.api.spec.replica_specs import Role
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.backoff import Backoff
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.diagnosis.reachability import unreached_reporter
from dtjob.plan.failure.stalled import reporters
from dtjob.plan.seen.children import Silence, facts_of
from dtjob.plan.seen.report import read_report
from dtjob.status_client import NoStatus, read_status

logger = logging.getLogger(__name__)

AT_ONCE, AT_ONCE_IN_NAMESPACE = 100, 10
"""Requests under way to supervisors of one share, in all namespaces and in each."""
SILENT_AFTER_SECONDS = 60.0
"""From the first of several requests in a row without an answer. A supervisor that begins to listen late on a busy node
is not silent."""
LONGEST_PAUSE_SECONDS = 60.0
"""Between two requests to one that stays silent."""


class Share(Enum):
    """Supervisors that wait for nobody but each other."""

    ANSWERS = auto()
    """The last request was answered."""
    UNKNOWN = auto()
    """It is new, or its silence is shorter than SILENT_AFTER_SECONDS."""
    SILENT = auto()


@dataclass(frozen=True)
class Supervisor:
    """One to ask: the pod of a task, and where it listens."""

    job: JobKey
    task: str
    pod_uid: str
    host: str
    port: int
    only_if_chief_silent: bool = False
    """Whether it is asked only while the chief's status cannot be read."""

    @property
    def address(self) -> str:
        """`host:port`, as URLs have it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Reports:
    """Asks the chief and the evaluator of each job, over and over. An unreachable one is unknown, never a failure;
    while the chief is, others of its group may know why."""

    def __init__(
        self,
        store: Store,
        queue: WorkQueue[JobKey],
        every_seconds: float,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store, self._queue, self._every, self._clock = store, queue, every_seconds, clock
        self._pauses = Backoff(every_seconds, max(LONGEST_PAUSE_SECONDS, every_seconds))
        self._slots = {share: asyncio.Semaphore(AT_ONCE) for share in Share}
        self._slots_of = defaultdict[tuple[str, Share], asyncio.Semaphore](
            lambda: asyncio.Semaphore(AT_ONCE_IN_NAMESPACE)
        )
        self._tasks: dict[Supervisor, asyncio.Task[None]] = {}

    async def poll_forever(self) -> None:
        """Ask until cancelled."""
        try:
            while True:
                self._look_for_supervisors()
                await asyncio.sleep(self._every)
        finally:
            for task in self._tasks.values():
                task.cancel()

    def _look_for_supervisors(self) -> None:
        """Begin to ask those that are to be asked, and end it for all others."""
        found = dict.fromkeys(supervisors_to_ask(self._store))
        for one in self._tasks.keys() - found.keys():
            self._tasks.pop(one).cancel()
            if one.only_if_chief_silent:
                self._store.forget_report(one.job, one.task)
        for one in found:
            if one not in self._tasks or self._tasks[one].done():  # it ends only by a bug, or with `poll_forever`
                self._tasks[one] = asyncio.create_task(self._ask_forever(one))
        namespaces = {one.job[0] for one in found}
        for key in [key for key in self._slots_of if key[0] not in namespaces]:
            del self._slots_of[key]

    async def _ask_forever(self, one: Supervisor) -> None:
        share, missed, silent_since = Share.UNKNOWN, 0, 0.0
        while True:
            async with self._slots_of[one.job[0], share], self._slots[share]:
                answers = await self._ask(one)
            now = asyncio.get_running_loop().time()
            if answers:
                share, missed = Share.ANSWERS, 0
            else:
                silent_since = silent_since if missed else now
                share = Share.SILENT if now - silent_since >= SILENT_AFTER_SECONDS else Share.UNKNOWN
                missed += 1
            await asyncio.sleep(self._pauses.after(missed) if missed else self._every)

    async def _ask(self, one: Supervisor) -> bool:
        """Ask once, and take the answer in; whether there was one."""
        try:
            self._take_in(one, read_report(await read_status(one.host, one.port)))
        except NoStatus as error:
            silence = Silence(one.pod_uid, one.address, self._clock(), error.reason, str(error))
            if self._store.job(one.job) is not None and self._store.set_silence(one.job, one.task, silence):
                self._queue.add(one.job)
        except Exception:  # whatever one tenant's pod says, the others' go on
            logger.exception("%s/%s: a bug in dtjob, in reading the status of %s", *one.job, one.task)
        else:
            return True
        return False

    def _take_in(self, one: Supervisor, report: dict[str, object]) -> None:
        manifest = self._store.job(one.job)
        if manifest is None:
            return
        if report.get("jobUid") != manifest["metadata"]["uid"]:
            raise NoStatus("BadAnswer", "what answered is not a supervisor of this job")
        if self._store.set_report(one.job, one.task, report):
            self._queue.add(one.job)


def supervisors_to_ask(store: Store) -> list[Supervisor]:
    """Those of the running chief and evaluator of each job that goes on. If a chief is silent, also those of tasks that
    may know why."""
    asked: list[Supervisor] = []
    for key in store.job_keys():
        try:
            asked += _supervisors_of(store, key)
        except Exception:  # one tenant's objects are no reason to ask nobody
            logger.exception("%s/%s: a bug in dtjob, in looking for its supervisors", *key)
    return asked


def _supervisors_of(store: Store, key: JobKey) -> list[Supervisor]:
    manifest = store.job(key)
    if manifest is None or (manifest.get("status") or {}).get("phase") in ENDED:
        return []
    if manifest["spec"].get("program") is None:
        return []
    try:
        job = store.read_job(key)
    except ValidationError:
        return []
    chief, children = topology.chief_task(job).id, store.children(key)
    wanted = {chief, f"{Role.EVALUATOR.value}-0"}
    pods = children.owned_pods(job)
    found = _running(key, job, pods, wanted)
    if children.silences or "unreached" in children.reports.get(chief, {}):
        uids = {id_: pod["metadata"]["uid"] for pod in pods if (id_ := facts_of(pod).task_id) and _running_at(pod)}
        others = _running(key, job, pods, {*reporters(job, children, uids), *unreached_reporter(job, children, uids)})
        found += [replace(one, only_if_chief_silent=True) for one in others]
    return found


def _running(key: JobKey, job: Job, pods: Iterable[Manifest], wanted: Set[str]) -> list[Supervisor]:
    return [
        Supervisor(key, task_id, pod["metadata"]["uid"], host, job.spec.network.status_port)
        for pod in pods
        if (task_id := facts_of(pod).task_id) in wanted and task_id is not None and (host := _running_at(pod))
    ]


def _running_at(pod: Manifest) -> str | None:
    """The pod's address, None while its training container does not run."""
    if "running" not in (facts_of(pod).container.get("state") or {}):
        return None
    address: str | None = (pod.get("status") or {}).get("podIP")
    return address
