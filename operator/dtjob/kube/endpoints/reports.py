# SPDX-License-Identifier: Apache-2.0
"""Reports: reads `/status` of the supervisors of running jobs. `controller/pace/asking.py` decides whose, and when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import ValidationError

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.api.spec.replica_specs import Role
from dtjob.api.stored_job import stored_job
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.asking import Asking, Supervisor
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.diagnosis.reachability import unreached_reporter
from dtjob.plan.failure.stalled import reporters
from dtjob.plan.seen.children import Silence, container_status
from dtjob.plan.seen.pod_facts import facts_of
from dtjob.plan.seen.report import read_report
from dtjob.status_client import NoStatus, read_status

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""How often it is looked who is due, at most."""


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
        self._asking = Asking(every_seconds)
        self._asked_for_chief: set[tuple[JobKey, str]] = set()
        self._questions: set[asyncio.Task[None]] = set()

    async def poll_forever(self) -> None:
        """Ask until cancelled."""
        loop, look_for_jobs_at = asyncio.get_running_loop(), 0.0
        try:
            while True:
                now = loop.time()
                if now >= look_for_jobs_at:
                    self._asking.seen(self._look_for_supervisors(), now)
                    look_for_jobs_at = now + self._every
                for one in self._asking.next(now):
                    question = asyncio.create_task(self._ask(one))
                    self._questions.add(question)
                    question.add_done_callback(self._questions.discard)
                await asyncio.sleep(min(self._every, LOOK_SECONDS))
        finally:
            for question in self._questions:
                question.cancel()

    def _look_for_supervisors(self) -> list[Supervisor]:
        found = supervisors_to_ask(self._store)
        asked_for_chief = {(one.job, one.task) for one in found if one.only_if_chief_silent}
        for key, task_id in self._asked_for_chief - asked_for_chief:
            self._store.forget_report(key, task_id)
        self._asked_for_chief = asked_for_chief
        return found

    async def _ask(self, one: Supervisor) -> None:
        answered = False
        try:
            self._take_in(one, read_report(await read_status(one.host, one.port)))
            answered = True
        except NoStatus as error:
            silence = Silence(one.pod_uid, one.address, self._clock(), error.reason, str(error))
            wanted = self._store.job(one.job) is not None and self._is_wanted(one)
            if wanted and self._store.set_silence(one.job, one.task, silence):
                self._queue.add(one.job)
        except Exception:  # whatever one tenant's pod says, the others' go on
            logger.exception("%s/%s: a bug in dtjob, in reading the status of %s", *one.job, one.task)
        finally:
            now = asyncio.get_running_loop().time()
            (self._asking.answered if answered else self._asking.stayed_silent)(one, now)

    def _take_in(self, one: Supervisor, report: dict[str, object]) -> None:
        manifest = self._store.job(one.job)
        if manifest is None or not self._is_wanted(one):
            return
        if report.get("jobUid") != manifest["metadata"]["uid"]:
            raise NoStatus("BadAnswer", "what answered is not a supervisor of this job")
        if self._store.set_report(one.job, one.task, report):
            self._queue.add(one.job)

    def _is_wanted(self, one: Supervisor) -> bool:
        """Whether what it says is still of use: the chief may have been heard again since it was asked."""
        return not one.only_if_chief_silent or (one.job, one.task) in self._asked_for_chief


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
    try:
        job = stored_job(manifest)
    except ValidationError:
        return []
    if job.spec.program is None:
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
    """The supervisors of these tasks that run."""
    return [
        Supervisor(key, task_id, pod["metadata"]["uid"], host, job.spec.network.status_port)
        for pod in pods
        if (task_id := facts_of(pod).task_id) in wanted and task_id is not None and (host := _running_at(pod))
    ]


def _running_at(pod: Manifest) -> str | None:
    """The pod's address, None while its training container does not run."""
    if "running" not in (container_status(pod).get("state") or {}):
        return None
    address: str | None = (pod.get("status") or {}).get("podIP")
    return address
