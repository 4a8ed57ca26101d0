"""Runs one job to its end on this machine: the operator's own store, queue and reconciler over local processes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dtjob.api.job import API_VERSION, KIND, CleanPods, Job, Role
from dtjob.controller.cluster import JobKey
from dtjob.controller.reconciler import Reconciler
from dtjob.controller.store import Store
from dtjob.controller.workqueue import WorkQueue
from dtjob.local import leftovers
from dtjob.local.addresses import Addresses
from dtjob.local.cluster import Directories, ProcessCluster
from dtjob.local.display.snapshot import Snapshot
from dtjob.local.recovery import Recoveries
from dtjob.local.runs import FAILED, SUCCEEDED, UNFINISHED, Run
from dtjob.local.status_client import read_status
from dtjob.objects import labels, topology
from dtjob.objects.defaults import Defaults
from dtjob.objects.pod import grace_seconds, pod
from dtjob.plan import children
from dtjob.plan.actions import Event, Manifest
from dtjob.plan.children import PodState
from dtjob.plan.policies.success import succeeded
from dtjob.plan.progress import last_words

POLL_SECONDS = 0.3
POLL_SECONDS_RECOVERING = 0.1
"""Steps after a failure are looked for more often, as recoverySeconds is measured by them."""

ENDED = (SUCCEEDED, FAILED)
DEFAULTS = Defaults(image=sys.executable)
"""A job needs no image here: this Python stands for it."""
Observer = Callable[[Snapshot], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `interrupted` is the number of the signal that stopped it, None where it ended by itself."""

    snapshot: Snapshot
    interrupted: int | None


class Engine:
    """One `dtjob run`. `observe` is called after every look at the supervisors, `say` with each event of the plan."""

    def __init__(self, job: Job, run: Run, observe: Observer, say: Callable[[Event], None]) -> None:
        self._run, self._observe = run, observe
        self.job = job_here(job, run.record.uid)
        self._key: JobKey = (job.metadata.namespace, job.metadata.name)
        self._store, self._queue = Store(), WorkQueue[JobKey]()
        self._addresses = Addresses.choose(self.job)
        directories = Directories(run.cluster_file, run.checkpoints, run.logs)
        self._cluster = ProcessCluster(
            manifest_of(self.job),
            self._addresses,
            directories,
            self._on_change,
            on_event=say,
            on_status=self._on_status,
        )
        self._recoveries = Recoveries(topology.chief_task(job).id)
        self._reports: dict[str, dict[str, Any]] = {}
        self._began = time.monotonic()
        self._stop, self._kill_now = asyncio.Event(), asyncio.Event()
        self._signal: int | None = None
        self._ended = asyncio.Event()

    async def run(self) -> Outcome:
        """Train until the job has succeeded or failed, or `stop` is called. No process is left when this returns."""
        self._cluster.prepare(pod(self.job, task, 0) for task in topology.tasks(self.job))
        # A dtjob that was killed leaves supervisors that still save: two writers must not meet in one directory.
        await leftovers.kill({"DTJOB_UID": self.job.metadata.uid})
        reconciling = asyncio.create_task(
            Reconciler(self._cluster, self._store, self._queue, defaults=DEFAULTS).run(workers=1)
        )
        polling = asyncio.create_task(self._poll_forever())
        waits = [asyncio.create_task(self._ended.wait()), asyncio.create_task(self._stop.wait())]
        try:
            await asyncio.wait([reconciling, polling, *waits], return_when=asyncio.FIRST_COMPLETED)
            for task in (reconciling, polling):
                if task.done():
                    task.result()  # neither ends by itself, but with a bug
        finally:
            for wait in waits:
                wait.cancel()
            reconciling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reconciling
            await self._cluster.stop(grace_seconds(self.job), self._kill_now)
            polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await polling
        if self._ended.is_set() or self._signal is None:
            return Outcome(self.snapshot(), None)
        status = dict(self._cluster.job.get("status") or {})
        if self._has_succeeded(status):
            # It ended while it was being stopped.
            status |= {"phase": SUCCEEDED, "reason": "Completed", "message": "training has ended"}
            self._run.save(SUCCEEDED, status)
            return Outcome(replace(self.snapshot(), status=status), None)
        self._run.save(UNFINISHED, status)
        return Outcome(self.snapshot(), self._signal)

    def _has_succeeded(self, status: dict[str, Any]) -> bool:
        views = children.view_tasks(self.job, self._store.children(self._key), status.get("attempts") or {})
        return succeeded(self.job, views, datetime.now(UTC))

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

    def _on_change(self, type_: str, manifest: Manifest) -> None:
        """What the watch is in a cluster. Called within the change, so the store is never behind."""
        key = self._store.remove(manifest) if type_ == "DELETED" else self._store.apply(manifest)
        if manifest["kind"] == "Pod":
            self._note_failure(manifest)
            if left := last_words(manifest):
                self._reports[labels.task_id(manifest)] = left
        if key is not None:
            self._queue.add(key)
        self._check_end()

    def _note_failure(self, pod: Manifest) -> None:
        now = datetime.now(UTC)
        failed = children.state_of(pod, now) is PodState.FAILED and not children.deleting(pod)
        if failed and labels.of(pod)[labels.ROLE] != Role.EVALUATOR and not self.stopping:
            self._recoveries.failed(labels.task_id(pod), self._reports, time.monotonic())

    def _on_status(self, status: dict[str, Any]) -> None:
        phase = status.get("phase", "")
        self._run.save(phase if phase in ENDED else UNFINISHED, status)

    def _check_end(self) -> None:
        """An ended job is over when its last process is: others than the chief may still have something to write."""
        manifest = self._store.job(self._key)
        if manifest and (manifest.get("status") or {}).get("phase") in ENDED and not self._active_pods():
            self._ended.set()

    def _active_pods(self) -> list[Manifest]:
        pods = self._store.children(self._key).owned(self.job, "Pod")
        return [pod for pod in pods if not children.ended(pod)]

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.gather(*(self._poll(pod) for pod in self._active_pods()))
            self._recoveries.observe(self._reports, time.monotonic())
            self._observe(self.snapshot())
            await asyncio.sleep(POLL_SECONDS if self._recoveries.current is None else POLL_SECONDS_RECOVERING)

    async def _poll(self, pod: Manifest) -> None:
        report = await read_status(self._addresses.status_port(pod["spec"]["hostname"]))
        task = labels.task_id(pod)
        if report is None or report.get("jobUid") != self.job.metadata.uid or report.get("task") != task:
            return
        self._reports[task] = report
        if self._store.set_report(self._key, task, report):
            self._queue.add(self._key)


def job_here(job: Job, uid: str) -> Job:
    """The job as one run on this machine has it.

    Its cleanPods is never None: files and logs stay anyway, and no process stays after the run, which would wait for
    ever for those that only serve.
    """
    spec = job.spec
    if spec.run_policy.clean_pods is CleanPods.NONE:
        run_policy = spec.run_policy.model_copy(update={"clean_pods": CleanPods.RUNNING})
        spec = spec.model_copy(update={"run_policy": run_policy})
    metadata = job.metadata.model_copy(update={"uid": uid, "generation": 1})
    return job.model_copy(update={"metadata": metadata, "spec": spec, "status": {}})


def manifest_of(job: Job) -> Manifest:
    """The job as an API server would store it."""
    dumped = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    metadata = {**dumped["metadata"], "namespace": job.metadata.namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dumped["spec"], "status": {}}
