"""What we believe: the last known version of every job and child, from watches, lists and our own calls.

Of each object only what is read is held (`objects/kept.py`), whoever brings it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Set
from typing import Any

from dtjob.api.job import KIND
from dtjob.api.phase import ENDED
from dtjob.controller.cluster import JobKey
from dtjob.objects import labels
from dtjob.objects.kept import kept
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import Children

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
        self._going_on: set[JobKey] = set()

    def job_keys(self) -> list[JobKey]:
        """Every job that is known."""
        return list(self._jobs)

    def job(self, key: JobKey) -> Manifest | None:
        """The job as last seen, None where there is none."""
        return self._jobs.get(key)

    def jobs_going_on(self) -> int:
        """How many jobs have not ended."""
        return len(self._going_on)

    def size(self, key: JobKey) -> int:
        """How many children are known of the job."""
        return len(self._children.get(key, ()))

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
        manifest = kept(manifest)
        if known is not None and _is_news_to_nobody(known, manifest):
            shelf[name] = manifest
            return None
        if manifest["kind"] == KIND and known is not None and known["metadata"]["uid"] != manifest["metadata"]["uid"]:
            self._forget(key)
        shelf[name] = manifest
        if manifest["kind"] == KIND:
            ended = (manifest.get("status") or {}).get("phase") in ENDED
            (self._going_on.discard if ended else self._going_on.add)(key)
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
            self._going_on.discard(key)
        return key

    def prune(self, kind: str, present: Set[str], list_version: int, unlisted: Collection[str] = ()) -> set[JobKey]:
        """Take in what a consistent LIST of one kind does not hold: all that is older than it and not among its uids
        `present` is gone, but for what is in the namespaces `unlisted`. What it does hold is `apply`'s.

        This heals what watches cannot: after a 410 and a relist, objects deleted meanwhile bring no DELETED event.
        """
        shelves: list[Any] = [self._jobs] if kind == KIND else list(self._children.values())
        known = [manifest for shelf in shelves for manifest in shelf.values() if manifest["kind"] == kind]
        gone = [
            manifest
            for manifest in known
            if manifest["metadata"]["uid"] not in present
            and manifest["metadata"]["namespace"] not in unlisted
            and _version(manifest) <= list_version
        ]
        return {key for manifest in gone if (key := self.remove(manifest)) is not None}

    def is_gone(self, uid: str) -> bool:
        """Whether the object with this uid is known to have been deleted."""
        return uid in self._deleted

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


def _is_news_to_nobody(known: Manifest, manifest: Manifest) -> bool:
    """Whether only the version differs in what is kept: most of what a kubelet writes concerns nobody here."""
    old, new = ({**one["metadata"], "resourceVersion": ""} for one in (known, manifest))
    return old == new and {**known, "metadata": None} == {**manifest, "metadata": None}


def _version(manifest: Manifest) -> int:
    # Comparable for these kinds: all come from etcd's one revision counter (KEP-5504 makes that official).
    return int(manifest["metadata"]["resourceVersion"])
