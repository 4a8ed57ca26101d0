"""An API server in memory, as strict as the real one where dtjob could go wrong, and a watch that may lag or lie.

It also checks, at every call, what must hold of an operator whatever happens (`Rules`): a test that drives it fails at
the very call that breaks a rule.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import KIND
from dtjob.controller.cluster import AlreadyExists, ClusterError, Stale
from dtjob.objects import drift, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event
from tests.unit.operator.simulation.invariants import Rules
from tests.unit.operator.simulation.plain import copied


class Crash(BaseException):
    """The operator's process dies here: no handler of its own may catch it."""


class SimulatedCluster:
    """Implements `cluster.Cluster` and `resync`'s `list_all`; the tests play user, kubelet and garbage collector."""

    def __init__(self, clock: Callable[[], datetime], watcher: Callable[[str, Manifest], None]) -> None:
        self.clock, self._watcher = clock, watcher
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.log: list[tuple[str, Manifest]] = []
        """Every watch event that there ever was."""
        self.events: list[Event] = []
        self.calls: list[str] = []
        self.crash_in: int | None = None
        """The call after so many others crashes."""
        self.crash_before = True
        """Whether the crash comes before the call takes effect or after it."""
        self.fail_next: ClusterError | None = None
        self.failing: dict[str, ClusterError] = {}
        """Calls that fail as long as they are in here."""
        self.rules = Rules()
        self._versions = itertools.count(100)
        self._uids = itertools.count(1)

    # Cluster protocol

    async def create(self, manifest: Manifest) -> Manifest:
        what = f"create {manifest['kind']} {manifest['metadata']['name']}"
        stored: Manifest = await self._call(what, lambda: self._create(manifest))
        return stored

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        await self._call(f"delete {kind} {name}", lambda: self._delete(kind, name, uid))

    async def stop_serving(self, namespace: str, name: str, uid: str) -> None:
        await self._call(f"stop serving {name}", lambda: self._stop_serving(name, uid))

    async def mend(self, wanted: Manifest, uid: str) -> Manifest | None:
        what = f"mend {wanted['kind']} {wanted['metadata']['name']}"
        stored: Manifest | None = await self._call(what, lambda: self._mend(wanted, uid))
        return stored

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        stored: Manifest = await self._call("write status", lambda: self._write_status(job, status))
        return stored

    async def emit(self, job: Manifest, event: Event) -> None:
        self.events.append(event)

    async def list_all(self, kind: str, namespace: str | None, selector: str = "") -> tuple[list[Manifest], int]:
        found = [copied(one) for one in self.of_kind(kind) if not selector or selector in labels.of(one)]
        return found, next(self._versions)

    async def get_metadata(self, kind: str, namespace: str, name: str) -> Manifest | None:
        found = self.objects.get((kind, name))
        return copied({part: found[part] for part in ("apiVersion", "kind", "metadata")}) if found else None

    # What others do

    def of_kind(self, kind: str) -> list[Manifest]:
        return [one for (kind_, _), one in self.objects.items() if kind_ == kind]

    def put(self, manifest: Manifest) -> Manifest:
        """Somebody creates an object."""
        stored = copied(manifest)
        stored["metadata"].setdefault("uid", f"uid-{next(self._uids)}")
        stored["metadata"]["creationTimestamp"] = times.rfc3339(self.clock())
        self.objects[stored["kind"], stored["metadata"]["name"]] = stored
        self._note("ADDED", stored)
        return copied(stored)

    def change(self, kind: str, name: str, change: Callable[[Manifest], None]) -> None:
        """Somebody changes an object."""
        stored = self.objects[kind, name]
        change(stored)
        self._note("MODIFIED", stored)

    def take_label_away(self, kind: str, name: str, label: str) -> None:
        """Somebody removes the label that a watch selects by: the watch says that the object is gone."""
        stored = self.objects[kind, name]
        before = copied(stored)
        if labels.of(stored).pop(label, None) is not None:
            before["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"] = str(next(self._versions))
            self.log.append(("DELETED", before))
            self._watcher("DELETED", copied(before))

    def ask_to_delete(self, kind: str, name: str, grace: float = 30) -> None:
        """kubectl delete. A pod that no kubelet has seen, and anything but a pod, goes at once."""
        stored = self.objects[kind, name]
        if kind != "Pod" or not (stored.get("status") or {}).get("containerStatuses"):
            self.remove(kind, name)
        elif "deletionTimestamp" not in stored["metadata"]:
            moment = times.rfc3339(self.clock() + timedelta(seconds=grace))
            self.change(kind, name, lambda one: one["metadata"].update(deletionTimestamp=moment))

    def remove(self, kind: str, name: str) -> None:
        """The object is gone."""
        self._note("DELETED", self.objects.pop((kind, name)))

    # Machinery

    async def _call(self, what: str, effect: Callable[[], Any]) -> Any:
        await asyncio.sleep(0.01)
        crashes = False
        if self.crash_in is not None:
            crashes = self.crash_in == 0
            self.crash_in = None if crashes else self.crash_in - 1
        if crashes and self.crash_before:
            raise Crash(what)
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            raise error
        if what in self.failing:
            raise self.failing[what]
        self.calls.append(what)
        try:
            return effect()
        finally:
            if crashes:
                raise Crash(what)

    def _create(self, manifest: Manifest) -> Manifest:
        key = manifest["kind"], manifest["metadata"]["name"]
        if key in self.objects:
            raise AlreadyExists(copied(self.objects[key]))
        self.rules.check_create(manifest, self.objects)
        return self.put(manifest)

    def _mend(self, wanted: Manifest, uid: str) -> Manifest | None:
        stored = self.objects.get((wanted["kind"], wanted["metadata"]["name"]))
        if stored is None or stored["metadata"]["uid"] != uid:
            return None
        self.rules.check_touch(stored, self.objects)
        mended = copied(drift.mended(wanted, stored))
        self.change(wanted["kind"], wanted["metadata"]["name"], lambda one: one.update(mended))
        return copied(stored)

    def _delete(self, kind: str, name: str, uid: str) -> None:
        stored = self.objects.get((kind, name))
        if stored is None or stored["metadata"]["uid"] != uid:
            return
        self.rules.check_touch(stored, self.objects)
        self.ask_to_delete(kind, name)

    def _stop_serving(self, name: str, uid: str) -> None:
        stored = self.objects.get(("Pod", name))
        if stored is None or stored["metadata"]["uid"] != uid:
            return
        self.rules.check_touch(stored, self.objects)
        self.change("Pod", name, lambda one: one["metadata"]["labels"].pop(labels.SERVING, None))

    def _write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        name = job["metadata"]["name"]
        stored = self.objects.get((KIND, name))
        if stored is None or stored["metadata"]["resourceVersion"] != job["metadata"]["resourceVersion"]:
            raise Stale(f"{name} has changed")
        self.rules.check_status(stored, status, self.clock(), self.objects)
        written = json.loads(json.dumps(status, allow_nan=False))
        self.change(KIND, name, lambda one: one.update(status=written))
        return copied(stored)

    def _note(self, type_: str, stored: Manifest) -> None:
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self.log.append((type_, copied(stored)))
        self._watcher(type_, copied(stored))
