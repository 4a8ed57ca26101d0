# SPDX-License-Identifier: Apache-2.0
"""Days of many jobs that come and go, in simulated time: what the operator keeps must not grow (`make soak`).

The real store, queue, informers and reconciler run over a cluster in memory. Jobs begin, fail, are deleted by their
users, succeed, and are removed by their time to live. Each hour a row says how much the operator keeps.
"""

import argparse
import asyncio
import gc
import inspect
import itertools
import random
import sys
import time
import types
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.growth import grown
from dtjob.api.job import KIND
from dtjob.controller.observer import Observer
from dtjob.controller.store import TOMBSTONES
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World

TICK_SECONDS = 60.0
"""How often kubelets and users act."""
RESYNC_SECONDS = 600.0
"""As in the operator."""
SHORTEST, LONGEST = 600.0, 6 * 3600.0
"""Seconds that a job trains."""
TIME_TO_LIVE = 1800
"""Seconds that a job stays after its end."""
_CODE = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.CodeType)

Row = dict[str, int]


class Day:
    """A cluster with so many jobs at any time."""

    def __init__(self, jobs: int, seed: int = 0) -> None:
        self._jobs, self._chance, self._numbers = jobs, random.Random(seed), itertools.count(1)
        self._ends: dict[str, float] = {}
        """When the training of each job that goes on ends."""
        self.begun = self.removed = self.failures = 0
        self._world = World(self._next_job(), Observer())
        self._next_resync = RESYNC_SECONDS

    def rows(self, hours: int) -> Iterator[Row]:
        """One row after each hour."""
        for hour in range(1, hours + 1):
            while self._world.loop.time() < 3600.0 * hour:
                self._tick()
            yield {"hour": hour, **self._kept()}
        self._world.close()

    def _next_job(self) -> Any:
        name = f"job-{next(self._numbers)}"
        self.begun += 1
        now = self._world.loop.time() if self.begun > 1 else 0.0
        self._ends[name] = now + self._chance.uniform(SHORTEST, LONGEST)
        found = builders.job(strategy="MultiWorkerMirrored", ttlSecondsAfterFinished=TIME_TO_LIVE)
        return found.model_copy(update={"metadata": found.metadata.model_copy(update={"name": name, "uid": name})})

    def _tick(self) -> None:
        world, cluster = self._world, self._world.cluster
        there = sorted(one["metadata"]["name"] for one in cluster.of_kind(KIND))
        for _ in range(min(self._jobs - len(there), max(1, self._jobs // 20))):
            world.apply(self._next_job())
        for name in there:  # users delete one in a hundred each hour
            if self._chance.random() < 0.01 * TICK_SECONDS / 3600.0:
                cluster.remove(KIND, name)
        self._collect()
        for pod in cluster.of_kind("Pod"):
            self._act(pod)
        world.run(TICK_SECONDS)
        if world.loop.time() >= self._next_resync:
            self._next_resync += RESYNC_SECONDS
            world.resync()
        for own in (cluster.log, cluster.events, cluster.calls):  # the simulation's own
            own.clear()

    def _collect(self) -> None:
        """The garbage collector removes what belonged to a job that is gone."""
        cluster = self._world.cluster
        gone = {name for name in self._ends if (KIND, name) not in cluster.objects}
        for kind, name in [key for key in cluster.objects if key[0] != KIND]:
            owners = cluster.objects[kind, name]["metadata"].get("ownerReferences") or ()
            if any(owner["name"] in gone for owner in owners):
                cluster.remove(kind, name)
        for name in gone:
            del self._ends[name]
        self.removed += len(gone)

    def _act(self, pod: Manifest) -> None:
        """What its kubelet and its program do."""
        cluster, name = self._world.cluster, pod["metadata"]["name"]
        job = pod["metadata"]["ownerReferences"][0]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            cluster.remove("Pod", name)
        elif (phase := (pod.get("status") or {}).get("phase")) in ("Succeeded", "Failed"):
            return
        elif self._world.loop.time() >= self._ends.get(job, 0.0):
            self._set(name, builders.ended(0, self._world.now()))
        elif self._chance.random() < 0.02 * TICK_SECONDS / 3600.0:
            self.failures += 1
            self._set(name, builders.ended(137, self._world.now()))
        elif phase != "Running":
            self._set(name, builders.running())

    def _set(self, pod: str, status: dict[str, Any]) -> None:
        self._world.cluster.change("Pod", pod, lambda one: one.update(status={**status, "podIP": "10.0.0.1"}))

    def _kept(self) -> Row:
        world, store, queue = self._world, self._world.store, self._world.queue
        coroutine: Any = world._operator.get_coro()
        reconciler = inspect.getcoroutinelocals(coroutine)["self"]
        roots = [store, queue, reconciler, *world._informers]
        return {
            "jobs": len(world.cluster.of_kind(KIND)),
            "pods": len(world.pods),
            "begun": self.begun,
            "failures": self.failures,
            "objects": _reachable(roots, (world.cluster, world.loop, store._deleted)),
            "deletions": len(store._deleted),
            "memories": len(store._memories),
            "timers": len(queue._later),
            "looks": len(queue._looked_at),
            "due": queue.at_hand,
            "tasks": len(asyncio.all_tasks(world.loop)),
        }


def _reachable(roots: Sequence[Any], but: Sequence[Any]) -> int:
    """How many objects the operator keeps: those that can be reached without the cluster and the event loop."""
    seen = {id(each) for each in but}
    left, count = list(roots), 0
    while left:
        found = left.pop()
        if id(found) in seen or isinstance(found, _CODE):
            continue
        seen.add(id(found))
        count += 1
        left.extend(gc.get_referents(found))
    return count


def faults(rows: Sequence[Row]) -> list[str]:
    """What grew, of objects for each job that is there."""
    each = [{"objects for each job": row["objects"] // max(row["jobs"], 1)} for row in rows]
    found = [
        *grown(each, ("objects for each job",), slack=0),
        *grown(rows, ("memories", "timers", "looks", "due", "tasks")),
    ]
    if max(row["deletions"] for row in rows) > TOMBSTONES:
        found.append(f"more than {TOMBSTONES} deletions are remembered")
    return found


def main() -> None:
    """Print a row for each simulated hour; exit with 1 where something grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows, began = [], time.monotonic()
    for row in Day(options.jobs, options.seed).rows(options.hours):
        if not rows:
            print(" ".join(f"{name:>10}" for name in row), flush=True)
        rows.append(row)
        print(" ".join(f"{value:>10}" for value in row.values()), f"  {time.monotonic() - began:6.0f} s", flush=True)
    for fault in (found := faults(rows)):
        print(fault)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
