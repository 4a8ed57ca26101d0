# SPDX-License-Identifier: Apache-2.0
"""A Kueue in memory: it admits Workloads, all at once or when a test says so, and takes its quota back."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from dtjob import times
from dtjob.objects import kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.workload import Workload

ADMITS_AFTER = 0.1
"""Seconds that it takes to find quota for a Workload, where there is any."""
REPLACED = "WorkloadSliceReplaced"
"""Why a Workload is finished when another is admitted in its place."""
FLAVOUR: Manifest = {
    "apiVersion": kueue.API_VERSION,
    "kind": "ResourceFlavor",
    "metadata": {"name": "spot"},
    "spec": {"nodeLabels": {"pool": "spot"}},
}


class _Cluster(Protocol):
    objects: dict[tuple[str, str], Manifest]

    def put(self, manifest: Manifest) -> Manifest: ...

    def change(self, kind: str, name: str, change: Callable[[Manifest], None]) -> None: ...


class SimulatedKueue:
    """What Kueue's own controllers do to Workloads: it touches nothing else."""

    def __init__(
        self, cluster: _Cluster, clock: Callable[[], datetime], later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._cluster, self._clock, self._later = cluster, clock, later
        self.open = True
        """Whether there is quota for all that come."""
        cluster.put(FLAVOUR)

    def sees(self, type_: str, manifest: Manifest) -> None:
        """Something has changed: where there is quota for all, a Workload gets its part soon."""
        if self.open and type_ != "DELETED" and manifest["kind"] == kueue.KIND:
            name = manifest["metadata"]["name"]
            self._later(ADMITS_AFTER, lambda: self.admit(name))

    def opens(self) -> None:
        """From now on there is quota for all; what somebody deactivated is active again."""
        self.open = True
        for name in self.names():
            self.activate(name, True)
            self.admit(name)

    def names(self) -> list[str]:
        """The Workloads that there are."""
        return sorted(name for kind, name in self._cluster.objects if kind == kueue.KIND)

    def workload(self, name: str) -> Workload | None:
        """The Workload of this name, None where there is none."""
        found = self._cluster.objects.get((kueue.KIND, name))
        return Workload(found) if found else None

    def waiting(self) -> list[str]:
        """Those that could be admitted now."""
        held = [name for name in self.in_force() if (found := self.workload(name)) and not found.admitted]
        return [*held, *(name for name in self.names() if self._may_have_quota(name))]

    def in_force(self) -> list[str]:
        """Those that hold quota."""
        return [name for name in self.names() if (found := self.workload(name)) and found.in_force]

    def admit(self, name: str, fewer: int = 0) -> None:
        """Give it quota, where it has none yet, and all admission checks are well."""
        self.reserve(name, fewer)
        if (found := self.workload(name)) and found.in_force and not found.admitted:
            self._say(name, {"Admitted": True}, "ByTest")

    def reserve(self, name: str, fewer: int = 0) -> None:
        """Give it quota while admission checks are open; with `fewer` for so many workers fewer than it asks for, as
        far as it says that it takes fewer."""
        if not self._may_have_quota(name):
            return
        sets = self._cluster.objects[kueue.KIND, name]["spec"]["podSets"]
        assigned = [
            {
                "name": one["name"],
                "count": max(one.get("minCount", one["count"]), one["count"] - fewer),
                "flavors": {"cpu": "spot"},
            }
            for one in sets
        ]
        admission = {"clusterQueue": "research", "podSetAssignments": assigned}
        self._say(name, {"QuotaReserved": True, "Evicted": False}, "ByTest", admission=admission)
        if (found := self.workload(name)) and self.workload(found.replaces):
            self._say(found.replaces, {"Finished": True}, REPLACED)

    def evict(self, name: str, reason: str) -> None:
        """Ask for its quota back."""
        if (found := self.workload(name)) and found.in_force:
            self._say(name, {"Evicted": True}, reason)

    def activate(self, name: str, active: bool) -> None:
        """An administrator, or Kueue itself, says whether it may be admitted at all. What is inactive is evicted."""
        found = self.workload(name)
        if found is None or found.active == active:
            return
        self._cluster.change(kueue.KIND, name, lambda one: one["spec"].update(active=active))
        if not active:
            self.evict(name, "Deactivated")

    def _may_have_quota(self, name: str) -> bool:
        found = self.workload(name)
        return found is not None and found.active and not (found.reserved or found.finished or found.is_going)

    def _say(self, name: str, said: dict[str, bool], reason: str, **status: Any) -> None:
        now = times.rfc3339(self._clock())

        def change(one: Manifest) -> None:
            there = {old["type"]: old for old in one.setdefault("status", {}).get("conditions") or ()}
            for type_, holds in said.items():
                there[type_] = {
                    "type": type_,
                    "status": str(holds),
                    "reason": reason,
                    "message": "",
                    "lastTransitionTime": now,
                }
            one["status"] |= {"conditions": list(there.values()), **status}

        self._cluster.change(kueue.KIND, name, change)


def owner_of(workload: Manifest) -> str:
    """The uid of the job that a Workload is for."""
    return labels.controller_uid(workload) or ""
