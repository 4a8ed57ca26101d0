# SPDX-License-Identifier: Apache-2.0
"""The operator's real store, queue, resync and reconciler over the simulated cluster, in simulated time."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from unittest.mock import patch

from dtjob.api.job import KIND, Job
from dtjob.controller import reconciler
from dtjob.controller.cluster import JobKey
from dtjob.controller.observer import Observer
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import LISTED_KINDS, Store
from dtjob.kube.calls.client import Kube
from dtjob.kube.watching.informer import Informer, resync, take_in
from dtjob.kube.watching.pod_groups import PodGroups
from dtjob.kube.watching.workloads import Workloads
from dtjob.objects import kueue, labels
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Unread
from tests.unit.operator.builders import NOW
from tests.unit.operator.simulation.api import copied
from tests.unit.operator.simulation.cluster import SELECTED_KINDS, Crash, SimulatedCluster
from tests.unit.operator.simulation.facts import sized_job
from tests.unit.operator.simulation.kueue import SimulatedKueue
from tests.unit.operator.simulation.metering import Meters
from tests.unit.operator.simulation.plans import plan_arguments
from tests.unit.operator.simulation.time import SimulatedLoop

WATCH_LAG_SECONDS = 0.05


class _Bugs(logging.Handler):
    """Collects what the reconciler logs as a bug of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


class World:
    """A cluster with one job to begin with, and an operator that may crash and come back."""

    def __init__(self, job: Job, observer: Observer | None = None, strict: bool = False) -> None:
        self.meters = Meters()
        self._observer = observer or self.meters
        self.loop = SimulatedLoop()
        self.cluster = SimulatedCluster(self.now, self._on_event, self._on_change, self.loop.call_later, strict)
        self._planning = patch.object(reconciler, "plan", self._plan)
        self._planning.start()
        self.key: JobKey = (job.metadata.namespace, job.metadata.name)
        self._pending: deque[tuple[str, Manifest]] = deque()
        self.watching = False
        self.skew = timedelta(0)
        """How far the nodes' clocks are ahead of the operator's."""
        self.ahead = timedelta(0)
        """How far the operator's clock, with all others, is ahead of the time."""
        self._broken: Exception | None = None
        """What a plan raised, or the check of one."""
        self._bugs = _Bugs()
        self._logger = logging.getLogger("dtjob.controller.reconciler")
        self._logger.addHandler(self._bugs)
        self.kueue = SimulatedKueue(self.cluster, self.now, self.loop.call_later)
        self.apply(job)
        self.loop.run_until_complete(self._start())

    def apply(self, job: Job) -> None:
        """kubectl apply of a new job."""
        self.cluster.put(job_manifest(job))

    def _plan(self, *arguments: Any, **more: Any) -> Plan:
        """The plan, which is checked. Whatever it raises is found, though the reconciler tries again for ever."""
        try:
            made = plan(*arguments, **more)
            job, children = plan_arguments(*arguments)
            self.cluster.rules.accounts.note_plan(job, children)
            self.cluster.plan_rules.check(job, children, made)
        except Unread:
            raise
        except Exception as error:  # the reconciler takes it for a bug of its own, logs it, and tries again for ever
            self._broken = self._broken or error
            raise
        return made

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.loop.time()) + self.ahead

    def node_time(self) -> datetime:
        """By the clocks of the nodes."""
        return self.now() + self.skew

    @property
    def job(self) -> Job:
        return self.job_named(self.key[1])

    def job_named(self, name: str) -> Job:
        """The job as it is stored, with as many workers as its group has."""
        return sized_job(Job.model_validate(copied(self.cluster.objects[KIND, name])))

    def job_status(self) -> dict[str, Any]:
        """The status as it is stored, also of a job that cannot be read."""
        return dict(self.cluster.objects[KIND, self.key[1]].get("status") or {})

    @property
    def pods(self) -> dict[str, Manifest]:
        """Every pod in the cluster, by name."""
        return {one["metadata"]["name"]: one for one in self.cluster.of_kind("Pod")}

    def run(self, seconds: float) -> None:
        """Let so much time pass. A crash restarts the operator with nothing but what the cluster has."""
        self.loop.run_until_complete(self._run(seconds))
        if self._bugs.found:
            record = self._bugs.found[0]
            cause = record.exc_info[1] if record.exc_info else None
            raise AssertionError(f"{record.getMessage()}: {cause!r}") from cause
        if self._broken:  # nothing is logged where somebody has turned that off
            raise AssertionError(f"a plan is wrong: {self._broken!r}") from self._broken

    def restart(self) -> None:
        """The operator is killed and started again."""
        self.loop.run_until_complete(self._restart())

    def resync(self) -> None:
        """The operator's periodic resync."""
        self.loop.run_until_complete(self._resync())

    def lose_watch(self) -> None:
        """Events are lost from now on."""
        self.watching = False
        self.cluster.rules.watch_is_lost(one["metadata"]["uid"] for type_, one in self._pending if type_ == "DELETED")
        self.cluster.quota_rules.watch_is_lost(self.now())
        self._pending.clear()

    def watch_again(self) -> None:
        """The watches after 410, each with a LIST before it. kopf's, of jobs, does not tell what is gone. Others do."""
        if not self.watching:
            self.watching, self.cluster.rules.watches = True, True
            for job in self.cluster.of_kind(KIND):
                self.deliver("MODIFIED", job)
            self.loop.run_until_complete(self._list(self._informers))

    def deliver(self, type_: str, manifest: Manifest) -> None:
        """One watch event, maybe late, maybe for the second time. Only jobs and labelled children have any."""
        labelled = manifest["kind"] in SELECTED_KINDS and labels.JOB_NAME in labels.of(manifest)
        if manifest["kind"] == KIND or labelled:
            take_in(self.store, self.queue, type_, copied(manifest))

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.loop.run_until_complete(self._stop())
        self.loop.close()
        self._logger.removeHandler(self._bugs)
        self._planning.stop()

    def _on_change(self, type_: str, manifest: Manifest) -> None:
        self.cluster.quota_rules.sees(type_, manifest, self.now(), self.watching)
        if manifest["kind"] == kueue.KIND:
            self.kueue.sees(type_, manifest)

    def _on_event(self, type_: str, manifest: Manifest) -> None:
        if self.watching:
            self._pending.append((type_, manifest))
            self.loop.call_later(WATCH_LAG_SECONDS, self._deliver_next)

    def _deliver_next(self) -> None:
        if self._pending:
            self.deliver(*self._pending.popleft())

    async def _run(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        while (left := until - self.loop.time()) > 1e-6:
            await asyncio.wait([self._operator], timeout=left)
            if self._operator.done():
                self._expect_crash()
                await self._restart()

    def _expect_crash(self) -> None:
        try:
            self._operator.result()
        except BaseExceptionGroup as group:
            _, others = group.split(Crash)
            if others is not None:
                raise others.exceptions[0] from None

    async def _restart(self) -> None:
        await self._stop()
        await self._start()

    async def _start(self) -> None:
        self.store, self.queue = Store(), WorkQueue[JobKey]()
        self.meters.process_begins(self.store, self.queue)
        self.cluster.rules.operator_restarted()
        self.cluster.crash_in = None
        self._workloads = Workloads(cast(Kube, self.cluster), self.store, self.queue, ())
        self._pod_groups = PodGroups(cast(Kube, self.cluster), self.store, self.queue, (), NO_DEFAULTS)
        *self._informers, self._jobs = (
            Informer(cast(Kube, self.cluster), kind, self.store, self.queue) for kind in (*LISTED_KINDS, KIND)
        )
        self._pending.clear()
        self.watching, self.cluster.rules.watches = True, True
        await self._resync()
        made = reconciler.Reconciler(self.cluster, self.store, self.queue, self.now, observer=self._observer)
        self._operator = self.loop.create_task(made.run(3))

    async def _resync(self) -> None:
        await self._list((*self._informers, self._jobs))

    async def _list(self, informers: Sequence[Informer]) -> None:
        await resync(informers)
        await self._pod_groups.resync()
        await self._workloads.resync()
        self.cluster.rules.listed(self.now(), jobs=self._jobs in informers)
        self.cluster.quota_rules.hears_again(self.now())

    async def _stop(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def job_manifest(job: Job) -> Manifest:
    """The job as a user applies it."""
    metadata = {
        "name": job.metadata.name,
        "namespace": job.metadata.namespace,
        "uid": job.metadata.uid,
        "generation": 1,
        "labels": dict((job.metadata.model_extra or {}).get("labels") or {}),
    }
    spec = job.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {"apiVersion": job.api_version, "kind": KIND, "metadata": metadata, "spec": spec}
