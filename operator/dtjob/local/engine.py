# SPDX-License-Identifier: Apache-2.0
"""Runs one job to its end on this machine: the operator's own store, queue and reconciler over local processes."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED, Phase
from dtjob.controller.cluster import ClusterError, JobKey
from dtjob.controller.pace.pace import StatusDelay
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.reconciler import Reconciler
from dtjob.controller.store import Store
from dtjob.local import outcome
from dtjob.local.cluster import ProcessCluster
from dtjob.local.display.snapshot import Snapshot
from dtjob.local.here import DEFAULTS, job_here, manifest_of
from dtjob.local.outcome import Outcome
from dtjob.local.processes import leftovers
from dtjob.local.processes.addresses import HOST, Addresses
from dtjob.local.processes.command import Directories
from dtjob.local.processes.devices import devices_here, shares
from dtjob.local.processes.starter import Starter
from dtjob.local.recovery import Recoveries, counts
from dtjob.local.runs import UNFINISHED, Run, RunStateError
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.environment import pod_seconds
from dtjob.objects.pod.pod import pod
from dtjob.plan.actions import Event
from dtjob.plan.seen.children import Children, Silence
from dtjob.plan.seen.progress import last_words
from dtjob.plan.seen.report import read_report
from dtjob.status_client import NoStatus, read_status

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.3
POLL_SECONDS_RECOVERING = 0.1
"""Steps after a failure are looked for more often, as recoverySeconds is measured by them."""

ANSWER_SECONDS = 1.0


class Engine:
    """One `dtjob run`. `observe` is called after every look at the supervisors, `say` with each event of the plan."""

    def __init__(
        self,
        job: Job,
        run: Run,
        observe: Callable[[Snapshot], None],
        say: Callable[[Event], None],
        starter: Starter | None = None,
    ) -> None:
        self._run, self._observe = run, observe
        self.job = job_here(job, run.record.uid, run.active_before)
        self._key: JobKey = (job.metadata.namespace, job.metadata.name)
        self._store, self._queue = Store(), WorkQueue[JobKey]()
        self._addresses = Addresses.choose(self.job)
        self._reports: dict[str, dict[str, Any]] = {}
        """The last report of every task by its id, those that have ended included."""
        self._recoveries = Recoveries(topology.chief_task(job).id)
        self._began = time.monotonic()
        self._stop, self._kill_now, self._over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._signal: int | None = None
        self._cluster = ProcessCluster(
            manifest_of(self.job),
            self._addresses,
            Directories(run.cluster_file, run.checkpoints, run.logs),
            self._on_change,
            on_event=say,
            on_status=self._on_status,
            starter=starter,
            devices=shares(self._first_pods(), devices_here(os.environ)),
        )

    async def run(self) -> Outcome:
        """Train until the job has succeeded or failed, or `stop` is called. No process is left when this returns."""
        self._cluster.prepare(self._first_pods())
        # A dtjob that was killed leaves supervisors that still save: two writers must not meet in one directory.
        await leftovers.kill({"DTJOB_UID": self.job.metadata.uid})
        defaults = replace(DEFAULTS, checkpoints=str(self._run.checkpoints))
        reconciler = Reconciler(self._cluster, self._store, self._queue, defaults=defaults, status_delay=StatusDelay(0))
        reconciling = asyncio.create_task(reconciler.run(workers=1))
        polling = asyncio.create_task(self._poll_forever())
        waits = [asyncio.create_task(self._over.wait()), asyncio.create_task(self._stop.wait())]
        try:
            await asyncio.wait([reconciling, polling, *waits], return_when=asyncio.FIRST_COMPLETED)
            for task in (reconciling, polling):
                if task.done():
                    task.result()  # neither ends by itself, but with a bug
        finally:
            for wait in waits:
                wait.cancel()
            await _end(reconciling)
            longest = max(pod_seconds(self.job, one) for one in topology.all_tasks(self.job))
            await self._cluster.stop(longest, self._kill_now)
            await _end(polling)
        return self._outcome()

    def _first_pods(self) -> list[Manifest]:
        return [pod(self.job, task, 0) for task in topology.all_tasks(self.job)]

    def stop(self, signal_number: int) -> None:
        """End the run: every process is asked to save and end; the second call kills them."""
        if self._stop.is_set():
            self._kill_now.set()
        self._signal = self._signal or signal_number
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def snapshot(self) -> Snapshot:
        """What is known now."""
        return Snapshot(
            job=self.job,
            status=self._cluster.job.get("status") or {},
            pods=tuple(self._cluster.pods),
            pids=self._cluster.running(),
            reports=dict(self._reports),
            recovering=self._recoveries.current is not None,
            recovery_seconds=tuple(self._recoveries.seconds),
            elapsed=time.monotonic() - self._began,
        )

    def _outcome(self) -> Outcome:
        if self._over.is_set() or self._signal is None:
            return Outcome(self.snapshot(), None)
        status = dict(self._cluster.job.get("status") or {})
        success = outcome.success_while_stopped(self.job, status, self._children, datetime.now(UTC))
        if success is not None:
            self._save(Phase.SUCCEEDED.value, success)
            return Outcome(replace(self.snapshot(), status=success), None)
        status = outcome.when_stopped(self.job, status, self._children, datetime.now(UTC))
        self._save(UNFINISHED, status)
        return Outcome(replace(self.snapshot(), status=status), self._signal)

    @property
    def _children(self) -> Children:
        return self._store.children(self._key)

    def _on_change(self, type_: str, manifest: Manifest) -> None:
        """What the watch is in a cluster. Called within the change, so the store is never behind."""
        key = self._store.remove(manifest) if type_ == "DELETED" else self._store.apply(manifest)
        if manifest["kind"] == "Pod":
            if counts(manifest, datetime.now(UTC)) and not self.stopping:
                self._recoveries.failed(labels.task_id(manifest), self._reports, time.monotonic())
            if left := last_words(manifest):
                self._reports[labels.task_id(manifest)] = left
        if key is not None:
            self._queue.add(key)
        stored = self._store.job(self._key)
        now = datetime.now(UTC)
        if stored and outcome.is_over(self.job, stored.get("status") or {}, self._children, now):
            self._over.set()

    def _on_status(self, status: dict[str, Any]) -> None:
        phase = status.get("phase", "")
        try:
            self._run.save(phase if phase in ENDED else UNFINISHED, status)
        except RunStateError as error:  # as a cluster that does not answer: it is tried again
            raise ClusterError(str(error)) from None

    def _save(self, phase: str, status: dict[str, Any]) -> None:
        """Write down how the run was left; where that cannot be, the next one takes it for killed."""
        try:
            self._run.save(phase, status)
        except RunStateError as error:
            logger.warning("%s", error)

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.gather(*(self._ask(pod) for pod in outcome.active(self._children.owned_pods(self.job))))
            self._recoveries.observe(self._reports, time.monotonic())
            self._observe(self.snapshot())
            await asyncio.sleep(POLL_SECONDS if self._recoveries.current is None else POLL_SECONDS_RECOVERING)

    async def _ask(self, pod: Manifest) -> None:
        task, port = labels.task_id(pod), self._addresses.status_port(pod["spec"]["hostname"])
        try:
            report = await read_status(HOST, port, answer_seconds=ANSWER_SECONDS)
        except NoStatus as error:
            # Only if others say that they wait for it: no network can be in the way here, of which to warn.
            waited_for = any(task in one.get("silent", ()) for one in self._reports.values())
            if waited_for and self._reports.get(task, {}).get("attempt") == topology.attempt_of(pod):
                told = Silence(pod["metadata"]["uid"], f"{HOST}:{port}", datetime.now(UTC), error.reason, str(error))
                if self._store.set_silence(self._key, task, told):
                    self._queue.add(self._key)
            return
        if (report.get("jobUid"), report.get("task")) != (self.job.metadata.uid, task):
            return  # a stranger has the port
        self._reports[task] = report
        if self._store.set_report(self._key, task, read_report(report)):  # a NaN would differ from itself each time
            self._queue.add(self._key)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
