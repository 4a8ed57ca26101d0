# SPDX-License-Identifier: Apache-2.0
"""A cluster of one machine: the calls of `cluster.Cluster`, with a supervisor process for each pod."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dtjob import times
from dtjob.controller.cluster import ClusterError, Refused, Stale
from dtjob.local import pod_status
from dtjob.local.api_server import Objects, Watcher
from dtjob.local.processes import command, leftovers
from dtjob.local.processes.addresses import Addresses
from dtjob.local.processes.command import Directories
from dtjob.local.processes.starter import Process, Starter
from dtjob.objects import drift, labels, shared
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event, PatchWorkload

TAIL_BYTES = 64 * 1024


@dataclass
class Supervisor:
    """The process that stands for a pod."""

    process: Process
    started_at: datetime
    watching: asyncio.Task[None]

    @property
    def runs(self) -> bool:
        """Whether its end has not been seen."""
        return self.process.returncode is None

    def tell(self, number: signal.Signals) -> None:
        """Signal it if it still runs; SIGKILL goes to its whole group."""
        if self.runs:
            with contextlib.suppress(ProcessLookupError):
                if number is signal.SIGKILL:
                    os.killpg(self.process.pid, number)
                else:
                    self.process.send_signal(number)


class ProcessCluster:
    """Implements `cluster.Cluster` for one job: objects in memory, pods as supervisor processes.

    A process' end is seen at once by asyncio's child watcher and written into the pod's status, as a kubelet would.
    """

    def __init__(
        self,
        job: Manifest,
        addresses: Addresses,
        directories: Directories,
        watcher: Watcher,
        on_event: Callable[[Event], None] = lambda event: None,
        on_status: Callable[[dict[str, Any]], None] = lambda status: None,
        starter: Starter | None = None,
        devices: Mapping[str, str] | None = None,
    ) -> None:
        """`devices`: task to the GPUs that it sees, if it has some of its own."""
        self._starter = starter or Starter()
        self._addresses, self._directories, self._devices = addresses, directories, devices
        self._on_event, self._on_status = on_event, on_status
        self._objects = Objects(watcher)
        self._supervisors: dict[str, Supervisor] = {}
        self._deletions: set[asyncio.Task[None]] = set()
        self._closed = False
        self._objects.add(job)
        self._job_kind, self._job_name = job["kind"], job["metadata"]["name"]

    @property
    def job(self) -> Manifest:
        """The job as stored, with its last status."""
        stored = self._objects.get(self._job_kind, self._job_name)
        assert stored is not None
        return stored

    @property
    def pods(self) -> list[Manifest]:
        """Every pod that there is."""
        return self._objects.all("Pod")

    def running(self) -> dict[str, int]:
        """Pod name to pid of its supervisor, for those that run."""
        return {name: one.process.pid for name, one in self._supervisors.items() if one.runs}

    def prepare(self, pods: Iterable[Manifest]) -> None:
        """Begin with what the processes of these pods have in common, so that their starts are short."""
        self._starter.prepare(self._command(pod) for pod in pods)

    async def create(self, manifest: Manifest) -> Manifest:
        """Keep the object; for a pod, start its process. Raises AlreadyExists or Refused."""
        if self._closed:
            raise ClusterError("the run is being stopped")
        if manifest["kind"] == "ConfigMap":
            spec = json.loads(manifest["data"][shared.CLUSTER_KEY])
            self._directories.cluster_file.write_text(json.dumps(self._addresses.cluster(spec)))
        stored, name = self._objects.add(manifest), manifest["metadata"]["name"]
        if manifest["kind"] != "Pod":
            return stored
        try:
            supervisor = await self._start(stored)
        except OSError as error:
            self._objects.remove("Pod", name)
            raise Refused(f"{name} cannot be started: {error}") from None
        self._supervisors[name] = supervisor
        status = pod_status.running(supervisor.started_at)
        return self._objects.change("Pod", name, lambda pod: pod.update(status=status)) or stored

    async def delete(self, kind: str, namespace: str, name: str, uid: str, version: str = "") -> None:
        """Delete the object with this uid; a pod's process gets SIGTERM and its grace period, in the background. Nobody
        else changes objects here, so any version is the last."""
        stored = self._objects.get(kind, name, uid)
        if stored is None or "deletionTimestamp" in stored["metadata"]:
            return
        supervisor = self._supervisors.get(name) if kind == "Pod" else None
        if supervisor is None or not supervisor.runs:
            self._remove(kind, name)
            return
        grace = stored["spec"]["terminationGracePeriodSeconds"]
        over = times.rfc3339(datetime.now(UTC) + timedelta(seconds=grace))
        asked = {"deletionTimestamp": over, "deletionGracePeriodSeconds": grace}
        self._objects.change(kind, name, lambda pod: pod["metadata"].update(asked))
        deletion = asyncio.create_task(self._end(name, supervisor, grace))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deletions.discard)

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        """The object as it is now."""
        return self._objects.get(kind, name)

    async def warning_about(self, namespace: str, pod_uid: str) -> str:
        """Nobody but this run tells anything of its processes."""
        return ""

    async def patch_workload(self, namespace: str, action: PatchWorkload) -> Manifest:
        """There are no Workloads: a job that runs here is in no queue."""
        raise Stale(f"there is no Workload {action.name}")

    async def stop_serving(self, namespace: str, name: str, uid: str) -> Manifest | None:
        """Here only a pod's successor gets its address, but the plan has to see it out of service."""
        if self._objects.get("Pod", name, uid) is None:
            return None
        return self._objects.change("Pod", name, lambda pod: pod["metadata"]["labels"].pop(labels.SERVING, None))

    async def repair(self, wanted: Manifest, uid: str) -> Manifest | None:
        """Put the object right. Nobody but dtjob has it here, so that nobody changes it."""
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        if (there := self._objects.get(kind, name, uid)) is None:
            return None
        return self._objects.change(kind, name, lambda one: one.update(drift.repaired(wanted, there)))

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        """Replace the job's status, first on disk. Raises Stale where `job` is not the stored version."""
        if job["metadata"].get("resourceVersion") != self.job["metadata"]["resourceVersion"]:
            raise Stale(f"{self._job_name} has changed")
        if status == self.job.get("status"):
            return self.job
        self._on_status(status)
        stored = self._objects.change(self._job_kind, self._job_name, lambda stored: stored.update(status=status))
        assert stored is not None
        return stored

    async def emit(self, job: Manifest, event: Event) -> None:
        """Hand the event to the view."""
        self._on_event(event)

    async def stop(self, grace_seconds: float, kill_now: asyncio.Event | None = None) -> None:
        """End every process: SIGTERM to all at once, so that they save; after the grace period, or `kill_now`, SIGKILL.

        Nothing can be created after this. Returns when every supervisor is reaped.
        """
        self._closed = True
        supervisors = [*self._supervisors.values()]
        for supervisor in supervisors:
            supervisor.tell(signal.SIGTERM)
        ended = asyncio.gather(*(one.watching for one in supervisors if not one.watching.done()))
        impatient = asyncio.ensure_future((kill_now or asyncio.Event()).wait())
        waiting: set[asyncio.Future[Any]] = {ended, impatient}
        await asyncio.wait(waiting, timeout=grace_seconds, return_when=asyncio.FIRST_COMPLETED)
        impatient.cancel()
        for supervisor in supervisors:
            supervisor.tell(signal.SIGKILL)
        await ended
        await asyncio.gather(*self._deletions)
        self._starter.close()

    async def _start(self, pod: Manifest) -> Supervisor:
        name = pod["metadata"]["name"]
        self._directories.termination_log(name).unlink(missing_ok=True)
        wanted = self._command(pod)
        process = await self._starter.start(wanted, self._directories.log(name))
        started_at = datetime.now(UTC)
        marks = {mark: wanted.environment[mark] for mark in leftovers.MARKS if mark in wanted.environment}
        return Supervisor(process, started_at, asyncio.create_task(self._watch(name, process, started_at, marks)))

    def _command(self, pod: Manifest) -> command.Command:
        return command.local_command(pod, self._addresses, self._directories, os.environ, self._devices)

    async def _watch(self, name: str, process: Process, started_at: datetime, marks: dict[str, str]) -> None:
        """Write the process' end into the pod's status, at once. `marks`: variables of all processes of the pod."""
        code = await process.wait()
        # As the end of a container: what a killed supervisor left behind must not hold its successor's ports.
        await leftovers.kill(marks)
        log = _read_tail(self._directories.log(name))
        left = _read_tail(self._directories.termination_log(name))
        status = pod_status.ended(code, started_at, datetime.now(UTC), log, left)
        self._objects.change("Pod", name, lambda pod: pod.update(status=status))

    async def _end(self, name: str, supervisor: Supervisor, grace_seconds: float) -> None:
        supervisor.tell(signal.SIGTERM)
        await asyncio.wait([supervisor.watching], timeout=grace_seconds)
        supervisor.tell(signal.SIGKILL)
        await supervisor.watching
        self._remove("Pod", name)

    def _remove(self, kind: str, name: str) -> None:
        if kind == "Pod":
            self._supervisors.pop(name, None)
        self._objects.remove(kind, name)


def _read_tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
