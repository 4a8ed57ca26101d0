# SPDX-License-Identifier: Apache-2.0
"""An API server in memory, as strict as the real one where dtjob could go wrong, and a watch that may lag or lie.

It also checks, at every call, what must hold of an operator whatever happens (`Rules`): a test that drives it fails at
the very call that breaks a rule.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import KIND
from dtjob.controller.cluster import AlreadyExists, ClusterError, Gone, Refused, Stale
from dtjob.controller.store import LISTED_KINDS
from dtjob.objects import drift, gangs, kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event, PatchWorkload
from dtjob.plan.seen.children import ended, facts_of
from tests.unit.operator import builders
from tests.unit.operator.simulation.api import copied, merge, refusal
from tests.unit.operator.simulation.facts import AllFacts, Facts
from tests.unit.operator.simulation.invariants import Rules
from tests.unit.operator.simulation.kueue import QuotaRules
from tests.unit.operator.simulation.lifetimes import Lifetimes
from tests.unit.operator.simulation.plans import PlanRules


class Crash(BaseException):
    """The operator's process dies here: no handler of its own may catch it."""


SELECTED_KINDS = (*LISTED_KINDS, *gangs.PROVIDERS, kueue.KIND)
"""Of these a watch shows only what has our label."""

Later = Callable[[float, Callable[[], None]], object]
"""Has a call made after so many seconds."""


class SimulatedCluster:
    """Implements `cluster.Cluster` and `resync`'s `pages`; the tests play user, node failures and what ends pods.

    Its kubelets do one thing by themselves: a pod whose grace period is over is killed, unless its node is lost.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        watcher: Callable[[str, Manifest], None],
        others: Callable[[str, Manifest], None],
        later: Later,
        strict: bool,
    ) -> None:
        """`watcher` is told what the operator's watch shows, `others` of every change."""
        self.clock, self._watcher, self._others, self._later = clock, watcher, others, later
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
        self.refusing: dict[str, ClusterError] = {}
        """The same by what their names begin with."""
        self.quota: int | None = None
        """The most pods that the namespace takes."""
        self.webhook: Callable[[Manifest], None] | None = None
        """What an admission webhook makes of each new pod."""
        self.lost: set[str] = set()
        """Uids of pods whose nodes do not answer any more."""
        self.facts = AllFacts()
        self.lifetimes = Lifetimes()
        self._shown: dict[str, Manifest] = {}
        """Children as the watch showed them last, by uid."""
        self.rules = Rules(self.objects, self.facts, strict)
        self.plan_rules = PlanRules(self.facts, strict)
        self.quota_rules = QuotaRules(self.objects, self.facts, self.lost)
        self._versions = itertools.count(100)
        self._uids = itertools.count(1)

    # Cluster protocol

    async def create(self, manifest: Manifest) -> Manifest:
        what = f"create {manifest['kind']} {manifest['metadata']['name']}"
        stored: Manifest = await self._call(what, lambda: self._create(manifest))
        return stored

    async def delete(self, kind: str, namespace: str, name: str, uid: str, version: str = "") -> Manifest | None:
        stored: Manifest | None = await self._call(
            f"delete {kind} {name}", lambda: self._delete(kind, name, uid, version)
        )
        return stored

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        if kind == "ConfigMap":  # without what it holds
            await asyncio.sleep(0.01)
            found = self.objects.get((kind, name))
            return copied({part: found[part] for part in ("apiVersion", "kind", "metadata")}) if found else None
        found = await self._call(f"get {kind} {name}", lambda: self.objects.get((kind, name)))
        return copied(found) if found else None

    async def stop_serving(self, namespace: str, name: str, uid: str) -> Manifest | None:
        stored: Manifest | None = await self._call(f"stop serving {name}", lambda: self._stop_serving(name, uid))
        return stored

    async def repair(self, wanted: Manifest, uid: str) -> Manifest | None:
        what = f"repair {wanted['kind']} {wanted['metadata']['name']}"
        stored: Manifest | None = await self._call(what, lambda: self._repair(wanted, uid))
        return stored

    async def patch_workload(self, namespace: str, action: PatchWorkload) -> Manifest:
        stored: Manifest = await self._call(f"patch {action.name}: {action.why}", lambda: self._patch_workload(action))
        return stored

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        stored: Manifest = await self._call("write status", lambda: self._write_status(job, status))
        return stored

    async def warning_about(self, namespace: str, pod_uid: str) -> str:
        return ""

    async def emit(self, job: Manifest, event: Event) -> None:
        self.rules.check_event(job, event)
        self.events.append(event)

    async def pages(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], int]]:
        found = [copied(one) for one in self.of_kind(kind) if not selector or selector in labels.of(one)]
        version = next(self._versions)
        for first in range(0, max(1, len(found)), 2):
            yield found[first : first + 2], version

    async def serves(self, version: str, plural: str) -> bool:
        """There is Kueue; it concerns only jobs that are labelled for a queue."""
        return True

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

    def ask_to_delete(self, kind: str, name: str) -> None:
        """kubectl delete. A pod that no kubelet has seen or that has ended, and anything but a pod, goes at once."""
        stored = self.objects[kind, name]
        if kind != "Pod" or facts_of(stored).is_terminal or not (stored.get("status") or {}).get("containerStatuses"):
            self.remove(kind, name)
        elif "deletionTimestamp" not in stored["metadata"]:
            grace = stored["spec"]["terminationGracePeriodSeconds"]
            moment, uid = times.rfc3339(self.clock() + timedelta(seconds=grace)), stored["metadata"]["uid"]
            told = {"deletionTimestamp": moment, "deletionGracePeriodSeconds": grace}
            self.change(kind, name, lambda one: one["metadata"].update(told))
            self._later(grace, lambda: self._kill(name, uid))

    def remove(self, kind: str, name: str) -> None:
        """The object is gone."""
        if kind == KIND or gangs.is_pod_group(kind):
            self.rules.is_gone(self.objects[kind, name], self.clock())
        self._note("DELETED", self.objects.pop((kind, name)))

    def _kill(self, name: str, uid: str) -> None:
        stored = self.objects.get(("Pod", name))
        if stored is None or stored["metadata"]["uid"] != uid or uid in self.lost:
            return
        if not ended(stored):
            kept = {"conditions": (stored.get("status") or {}).get("conditions") or []}
            status = builders.ended(137, self.clock()) | kept
            self.change("Pod", name, lambda one: one.update(status=status))
        self.remove("Pod", name)

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
        if self.failing or self.refusing:
            self.rules.calls_fail(self.clock())
        if what in self.failing:
            raise self.failing[what]
        for begins, error in self.refusing.items():
            if what.startswith(begins):
                if what.startswith("create ") and isinstance(error, Refused):
                    self.rules.refused(what, self.clock())
                raise error
        self.calls.append(what)
        before = self.rules.restarts_written.copy()
        try:
            return effect()
        finally:
            if crashes:
                self.rules.restarts_untold += self.rules.restarts_written - before
                raise Crash(what)

    def _create(self, manifest: Manifest) -> Manifest:
        key = manifest["kind"], manifest["metadata"]["name"]
        if key in self.objects:
            raise AlreadyExists(copied(self.objects[key]))
        if manifest["kind"] == "Pod" and self.quota is not None and len(self.of_kind("Pod")) >= self.quota:
            self.rules.refused(f"Pod {key[1]} of {labels.controller_uid(manifest)}", self.clock())
            raise Refused(f"pods {key[1]!r} is forbidden: exceeded quota: small")
        self.rules.check_create(manifest, self.clock())
        if manifest["kind"] == "Pod":
            if (job := self.rules.owner(manifest)) is not None:
                self.quota_rules.check_create(job, manifest, self.clock())
            uid = f"uid-{next(self._uids)}"
            self.facts.add(uid, key[1], Facts.of(manifest))
            manifest = copied({**manifest, "metadata": {**manifest["metadata"], "uid": uid}})
            if self.webhook is not None:
                self.webhook(manifest)
        return self.put(manifest)

    def _repair(self, wanted: Manifest, uid: str) -> Manifest | None:
        stored = self.objects.get((wanted["kind"], wanted["metadata"]["name"]))
        if stored is None or stored["metadata"]["uid"] != uid:
            return None
        self.rules.check_touch(stored, self.clock())
        repaired = copied(drift.repaired(wanted, stored))
        self.change(wanted["kind"], wanted["metadata"]["name"], lambda one: one.update(repaired))
        return copied(stored)

    def _delete(self, kind: str, name: str, uid: str, version: str) -> Manifest | None:
        stored = self.objects.get((kind, name))
        if stored is None or stored["metadata"]["uid"] != uid:
            return None
        if version and stored["metadata"]["resourceVersion"] != version:
            raise Stale(f"{name} has changed")
        self.rules.check_touch(stored, self.clock())
        if kind == KIND:
            self.lifetimes.check_deletion(stored, self.clock())
        if kind == kueue.KIND:
            self.quota_rules.check_delete(stored)
        self.ask_to_delete(kind, name)
        if gangs.is_pod_group(kind):
            self.rules.gang_is_released(uid)
        return copied(stored) if kind == "Pod" and (kind, name) in self.objects else None

    def _stop_serving(self, name: str, uid: str) -> Manifest | None:
        stored = self.objects.get(("Pod", name))
        if stored is None or stored["metadata"]["uid"] != uid:
            return None
        self.rules.check_touch(stored, self.clock())
        self.change("Pod", name, lambda one: one["metadata"]["labels"].pop(labels.SERVING, None))
        return copied(stored)

    def _write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        name = job["metadata"]["name"]
        stored = self.objects.get((KIND, name))
        if stored is None:
            raise Gone(f"{name} not found")
        if stored["metadata"]["resourceVersion"] != job["metadata"]["resourceVersion"]:
            raise Stale(f"{name} has changed")
        if why := refusal(status):
            raise Refused(f"{KIND} {name!r} is invalid: {why}")
        written = json.loads(json.dumps(status, allow_nan=False))
        if written == (stored.get("status") or {}):
            return copied(stored)  # no change is no new version, and what was stored may be forged
        self.rules.check_status(stored, status, self.clock())
        self.lifetimes.check_status(stored, status, self.clock())
        self.quota_rules.check_status(stored, status)
        self.change(KIND, name, lambda one: one.update(status=written))
        self.plan_rules.written(stored["metadata"]["uid"])
        return copied(stored)

    def _patch_workload(self, action: PatchWorkload) -> Manifest:
        stored = self.objects.get((kueue.KIND, action.name))
        if stored is None or stored["metadata"]["resourceVersion"] != action.version:
            raise Stale(f"{action.name} has changed")
        self.quota_rules.check_patch(stored, action)
        merged = copied(stored)
        merge(merged, action.body)
        self.change(kueue.KIND, action.name, lambda one: one.update(merged))
        return copied(stored)

    def _note(self, type_: str, stored: Manifest) -> None:
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self._others(type_, stored)
        if stored["kind"] in SELECTED_KINDS:
            self._show(type_, stored)
        else:
            self._tell(type_, stored)

    def _show(self, type_: str, child: Manifest) -> None:
        """A watch by label shows an object that loses the label as deleted, as it was before, and one that gets it as
        added."""
        uid, labelled = child["metadata"]["uid"], labels.JOB_NAME in labels.of(child)
        before = self._shown.pop(uid, None)
        if labelled and type_ != "DELETED":
            self._shown[uid] = copied(child)
        if labelled:
            self._tell("ADDED" if before is None and type_ == "MODIFIED" else type_, child)
        elif before is not None:
            before["metadata"]["resourceVersion"] = child["metadata"]["resourceVersion"]
            self._tell("DELETED", before)

    def _tell(self, type_: str, manifest: Manifest) -> None:
        self.log.append((type_, copied(manifest)))
        self._watcher(type_, copied(manifest))
