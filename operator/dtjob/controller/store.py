"""What we believe: the last known version of every job and child, from watches, lists and our own calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Any

from dtjob.api.job import KIND
from dtjob.controller.cluster import JobKey
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import Children
from dtjob.plan.pod_facts import ObservedPod

CHILD_KINDS = ("Pod", "Service", "ConfigMap", "NetworkPolicy")
TOMBSTONES = 20_000
"""Remembered deletions: more than can come in while one LIST is under way."""


class Store:
    """Jobs and children by job. Every change returns the key of the job that it concerns, None where nothing
    changed."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, Manifest] = {}
        self._children: dict[JobKey, dict[tuple[str, str], Manifest]] = {}
        self._reports: dict[JobKey, dict[str, dict[str, Any]]] = {}
        self._problems: dict[JobKey, dict[str, str]] = {}
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def job_keys(self) -> list[JobKey]:
        """Every job that is known."""
        return list(self._jobs)

    def job(self, key: JobKey) -> Manifest | None:
        """The job as last seen, None where there is none."""
        return self._jobs.get(key)

    def children(self, key: JobKey) -> Children:
        """All that is known of the job's children."""
        objects = tuple(self._children.get(key, {}).values())
        return Children(objects, dict(self._reports.get(key, {})), dict(self._problems.get(key, {})))

    def apply(self, manifest: Manifest) -> JobKey | None:
        """Take in an object, unless what is known under its name is as new, or it is known to be gone.

        That holds for another object of its name too: our own create answers before the watch has told of what stood
        there earlier. A new job of an old one's name begins without the old one's reports and problems.
        """
        if manifest["metadata"]["uid"] in self._deleted:
            return None
        shelf, name, key = self._place(manifest)
        known = shelf.get(name)
        if known is not None and _version(known) >= _version(manifest):
            return None
        if manifest["kind"] == KIND and known is not None and known["metadata"]["uid"] != manifest["metadata"]["uid"]:
            self._forget(key)
        shelf[name] = ObservedPod(manifest) if manifest["kind"] == "Pod" else manifest
        return key

    def remove(self, manifest: Manifest) -> JobKey | None:
        """Take in that an object is gone. A later one of the same name stays."""
        self._deleted[manifest["metadata"]["uid"]] = None
        while len(self._deleted) > TOMBSTONES:
            self._deleted.popitem(last=False)
        shelf, name, key = self._place(manifest)
        known = shelf.get(name)
        if known is None or known["metadata"]["uid"] != manifest["metadata"]["uid"]:
            return None
        del shelf[name]
        if manifest["kind"] == KIND:
            self._forget(key)
        return key

    def replace(
        self, kind: str, listed: Iterable[Manifest], list_version: int, unlisted: Collection[str] = ()
    ) -> set[JobKey]:
        """Take in a consistent LIST of one kind: newer versions, and what is missing from it and older than it is
        gone, but for what is in the namespaces `unlisted`.

        This heals what watches cannot: after a 410 and a relist, objects deleted meanwhile bring no DELETED event.
        """
        listed = list(listed)
        changed = {key for manifest in listed if (key := self.apply(manifest)) is not None}
        present = {manifest["metadata"]["uid"] for manifest in listed}
        shelves: list[Any] = [self._jobs] if kind == KIND else list(self._children.values())
        known = [manifest for shelf in shelves for manifest in shelf.values() if manifest["kind"] == kind]
        for manifest in known:
            metadata = manifest["metadata"]
            if metadata["namespace"] in unlisted:
                continue
            if metadata["uid"] not in present and _version(manifest) <= list_version:
                key = self.remove(manifest)
                if key is not None:
                    changed.add(key)
        return changed

    def set_report(self, key: JobKey, task_id: str, report: dict[str, Any]) -> bool:
        """Take in a supervisor's `/status`; whether it says anything new."""
        reports = self._reports.setdefault(key, {})
        new = reports.get(task_id) != report
        reports[task_id] = report
        return new

    def set_problem(self, key: JobKey, what: str, why: str | None) -> bool:
        """Note why an object (`Kind/name`) could not be made, or another call (in words) fails, or with None that it
        did not; whether that is new."""
        problems = self._problems.setdefault(key, {})
        if problems.get(what) == why:
            return False
        if why is None:
            del problems[what]
        else:
            problems[what] = why
        return True

    def problem(self, key: JobKey, what: str) -> str | None:
        """Why an object (`Kind/name`) could not be made, None where it could or was not tried."""
        return self._problems.get(key, {}).get(what)

    def keep_problems(self, key: JobKey, wanted: set[str]) -> bool:
        """Forget problems with what nobody wants any more; whether there were such."""
        problems = self._problems.get(key, {})
        stale = set(problems) - wanted
        for what in stale:
            del problems[what]
        return bool(stale)

    def _forget(self, key: JobKey) -> None:
        self._reports.pop(key, None)
        self._problems.pop(key, None)

    def _place(self, manifest: Manifest) -> tuple[dict[Any, Manifest], Any, JobKey]:
        metadata = manifest["metadata"]
        if manifest["kind"] == KIND:
            key = (metadata["namespace"], metadata["name"])
            return self._jobs, key, key
        key = (metadata["namespace"], labels.of(manifest)[labels.JOB_NAME])
        return self._children.setdefault(key, {}), (manifest["kind"], metadata["name"]), key


def _version(manifest: Manifest) -> int:
    # Comparable for these kinds: all come from etcd's one revision counter (KEP-5504 makes that official).
    return int(manifest["metadata"]["resourceVersion"])
