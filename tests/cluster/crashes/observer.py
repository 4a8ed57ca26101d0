# SPDX-License-Identifier: Apache-2.0
"""What happens in one namespace: its jobs and pods as they are now, and rules of pods that must hold at each moment."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from dtjob.objects.placeholder import is_placeholder
from tools.cluster.rest import Api, Object, path_of

PATIENCE = 300.0
"""Seconds for one wait: many operators share a machine that may be busy with other things."""
ENDED = ("Failed", "Succeeded")
_Found = TypeVar("_Found")


class Observer:
    """Follows jobs and pods with one watch each, for all who wait for them.

    Attributes: `jobs` and `pods` by name; `last`, each job as it was last; `made`, the uids of all pods there ever
    were, by name; `broken`, which rules were broken, by the job; `versions`, the resourceVersions of all changes.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._objects: dict[str, dict[str, Object]] = {"dtjobs": {}, "pods": {}}
        self.jobs, self.pods = self._objects["dtjobs"], self._objects["pods"]
        self.last: dict[str, Object] = {}
        self.made: defaultdict[str, set[str]] = defaultdict(set)
        self.broken: defaultdict[str, list[str]] = defaultdict(list)
        self.versions: list[int] = []
        self._changed, self._stopping = threading.Condition(), threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(one,), daemon=True) for one in self._objects]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()

    def wait(self, holds: Callable[[], _Found], what: str, timeout: float = PATIENCE) -> _Found:
        """What `holds` returns, as soon as that is true. Raises AssertionError: it never was."""
        limit = time.monotonic() + timeout
        with self._changed:
            while not (found := holds()):
                left = limit - time.monotonic()
                assert left > 0, f"after {timeout:.0f} s still not: {what}"
                self._changed.wait(left)
            return found

    def pods_of(self, job: str) -> dict[str, Object]:
        """Its pods, by their names without the job's."""
        return {
            name.removeprefix(f"{job}-"): one for name, one in list(self.pods.items()) if name.startswith(f"{job}-")
        }

    def _follow(self, resource: str) -> None:
        version = ""
        while not self._stopping.is_set():
            if not version:
                listing = self._api.call("GET", path_of(resource, self._namespace))
                version = listing["metadata"]["resourceVersion"]
                for item in listing["items"]:
                    self._take(resource, "ADDED", item)
            for kind, item in self._api.watch(resource, self._namespace, version, 30.0):
                if kind == "ERROR":
                    version = ""
                    break
                version = item["metadata"]["resourceVersion"]
                self._take(resource, kind, item)

    def _take(self, resource: str, kind: str, item: Object) -> None:
        meta, objects = item["metadata"], self._objects[resource]
        with self._changed:
            self.versions.append(int(meta["resourceVersion"]))
            if resource == "pods" and meta["uid"] not in self.made[meta["name"]] and kind != "DELETED":
                self._check(item)
                self.made[meta["name"]].add(meta["uid"])
            if resource == "dtjobs":
                self.last[meta["name"]] = item
            if kind == "DELETED":
                objects.pop(meta["name"], None)
            else:
                objects[meta["name"]] = item
            self._changed.notify_all()

    def _check(self, new: Object) -> None:
        """The rules of a pod that has just been made."""
        meta: dict[str, Any] = new["metadata"]
        job, task = meta["labels"]["training.dtjob.dev/job-name"], meta["name"].rpartition("-")[0]
        for name, other in self.pods.items():
            if name.rpartition("-")[0] != task or is_placeholder(name) or other["status"].get("phase") in ENDED:
                continue
            if "deletionTimestamp" not in other["metadata"]:
                self.broken[job].append(f"{meta['name']} was made while {name} lived")
            elif task == f"{job}-chief-0":
                self.broken[job].append(f"{meta['name']} was made before {name} had ended")
