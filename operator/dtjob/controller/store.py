# SPDX-License-Identifier: Apache-2.0
"""Store: the last known version of every job and child, from watches, lists and our own calls.

Of each object only what is read is held (`controller/stored_fields.py`), whoever brings it.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from dtjob.api.job import KIND, Job, stored_job
from dtjob.api.phase import ENDED
from dtjob.controller.cluster import JobKey
from dtjob.controller.pace.backoff import Holds, RepairLimit
from dtjob.controller.stored_fields import kept
from dtjob.objects import gangs, kueue, labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event
from dtjob.plan.seen.children import POD_ENDED, Children, ObservedPod, PodEvent, Silence
from dtjob.plan.seen.workload import Kueue

MOST_UNANSWERED = 8
"""Tries of one write that are remembered. While an API server is away for hours, each has a status of its own. The
first try stays: the API server may have taken it and gone away then."""


@dataclass(frozen=True)
class Unanswered:
    """A status that was sent, and nobody confirmed: it may be written or not."""

    job: Manifest
    status: dict[str, Any]
    events: Sequence[Event]


@dataclass
class Memory:
    """All of it can be found anew: an operator that starts has none."""

    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What supervisors said in their `/status`, by task."""
    silences: dict[str, Silence] = field(default_factory=dict)
    """The supervisors that do not answer, by task."""
    problems: dict[str, str] = field(default_factory=dict)
    """Why calls fail, by what they are about."""
    pod_event: PodEvent | None = None
    """What was read of a pod's events."""
    made_for: str = ""
    """The uid of the job whose objects are made."""
    holds: Holds = field(default_factory=Holds)
    """What was refused, and when it may be tried again."""
    repairs: RepairLimit = field(default_factory=RepairLimit)
    """What was repaired lately, by kind and name."""
    unanswered: list[Unanswered] = field(default_factory=list)
    """The first of the statuses and the last ones, if it is not known whether one of them is written."""

    def note_unanswered(self, sent: Unanswered) -> None:
        """Remember a status of which it is not known whether it is written."""
        if len(self.unanswered) == MOST_UNANSWERED:
            del self.unanswered[1]
        self.unanswered.append(sent)


LISTED_KINDS = ("Pod", "Service", "NetworkPolicy", "PersistentVolumeClaim")
"""The kinds of children that are listed and watched. ConfigMaps are asked for by name: who may list them may read them
all."""
TOMBSTONES = 20_000
"""Remembered deletions: more than can come in while one LIST is under way."""

_NOTHING = Memory()
"""What is remembered of most jobs that have gone; never changed."""


class Store:
    """Jobs and children by job. Every change returns the key of the job that it concerns, None if nothing
    changed."""

    def __init__(self) -> None:
        self._jobs: dict[JobKey, Manifest] = {}
        self._children: dict[JobKey, dict[tuple[str, str], Manifest]] = {}
        self._memories = defaultdict[JobKey, Memory](Memory)
        self._deleted: OrderedDict[str, int] = OrderedDict()  # uid to the version at which it was gone
        self._going_on: set[JobKey] = set()
        self._read: dict[JobKey, tuple[Manifest, Job]] = {}
        self.kueue = Kueue.IGNORED
        """Whether there is Kueue in the cluster."""

    def job_keys(self) -> list[JobKey]:
        """Every job that is known."""
        return list(self._jobs)

    def job(self, key: JobKey) -> Manifest | None:
        """The job as last seen, None if there is none."""
        return self._jobs.get(key)

    def read_job(self, key: JobKey) -> Job:
        """The job as last seen, which is there. While it goes on, each version is read once. Raises pydantic's
        ValidationError."""
        manifest = self._jobs[key]
        if (known := self._read.get(key)) is not None and known[0] is manifest:
            return known[1]
        job = stored_job(manifest)
        if key in self._going_on:
            self._read[key] = manifest, job
        return job

    def jobs_going_on(self) -> int:
        """How many jobs have not ended."""
        return len(self._going_on)

    def has_ended_pods(self, key: JobKey) -> bool:
        """Whether a pod of the job has ended, and the job has not: it failed, or has done its part."""
        pods = (one for (kind, _), one in self._children.get(key, {}).items() if kind == "Pod")
        return key in self._going_on and any((pod.get("status") or {}).get("phase") in POD_ENDED for pod in pods)

    def size(self, key: JobKey) -> int:
        """How many children are known of the job."""
        return len(self._children.get(key, ()))

    def children(self, key: JobKey) -> Children:
        """All that is known of the job's children."""
        objects, known = tuple(self._children.get(key, {}).values()), self._memories.get(key, _NOTHING)
        return Children(
            objects,
            dict(known.reports),
            dict(known.problems),
            dict(known.silences),
            pod_event=known.pod_event,
            kueue=self.kueue,
        )

    def memory(self, key: JobKey) -> Memory:
        """What is remembered of the job, to be added to."""
        return self._memories[key]

    def apply(self, manifest: Manifest, listed_at: int | None = None) -> JobKey | None:
        """Take in an object, unless what is known under its name is as new, or it is known to be gone. A LIST, of the
        version `listed_at`, knows better: what it holds was there at that version.

        That holds for another object of its name too: our own create answers before the watch has told of what stood
        there earlier. A new job of an old one's name begins without the old one's reports and problems.
        """
        if self._has_gone(manifest, listed_at):
            return None
        place = self._place(manifest)
        if place is None:
            return None
        shelf, name, key = place
        known = shelf.get(name)
        if known is not None and version_of(known) >= version_of(manifest):
            return None
        manifest = kept(manifest)
        if manifest["kind"] == "Pod":
            manifest = ObservedPod(manifest)
        if isinstance(known, ObservedPod):
            known.view = None
        if known is not None and _is_news_to_nobody(known, manifest):
            shelf[name] = manifest
            return None
        if manifest["kind"] == KIND and (known is None or known["metadata"]["uid"] != manifest["metadata"]["uid"]):
            self.forget(key)
        shelf[name] = manifest
        if manifest["kind"] == KIND:
            self._set_going_on(key, (manifest.get("status") or {}).get("phase") not in ENDED)
        return key

    def remove(self, manifest: Manifest, version: int | None = None) -> JobKey | None:
        """Take in that an object is gone, since `version` (None: its own). A later one of the same name stays. What is
        known of the object itself since then stays too: its label may be back before this is heard of."""
        uid = manifest["metadata"]["uid"]
        gone_at = max(version_of(manifest) if version is None else version, self._deleted.get(uid, -1))
        self._deleted[uid] = gone_at
        while len(self._deleted) > TOMBSTONES:
            self._deleted.popitem(last=False)
        place = self._place(manifest)
        if place is None:
            return None
        shelf, name, key = place
        known = shelf.get(name)
        if known is None or known["metadata"]["uid"] != manifest["metadata"]["uid"] or version_of(known) > gone_at:
            self._tidy(key)
            return None
        del shelf[name]
        if isinstance(known, ObservedPod):
            known.view = None
        if manifest["kind"] == KIND:
            self.forget(key)
            self._set_going_on(key, False)
        self._tidy(key)
        return key

    def prune(self, kind: str, present: Set[str], list_version: int, namespace: str | None = None) -> set[JobKey]:
        """Take in what a consistent LIST of one kind, in one namespace or in all, does not hold. An object is gone if
        it is older than the LIST and not among its uids `present`. `apply` takes in what the LIST does hold.

        This heals what watches cannot: after a 410 and a relist, objects deleted meanwhile bring no DELETED event.
        """
        children = ((key, one) for key, shelf in self._children.items() for one in shelf.values())
        known = self._jobs.items() if kind == KIND else children
        gone = [
            manifest
            for key, manifest in known
            if manifest["kind"] == kind
            and namespace in (None, key[0])
            and manifest["metadata"]["uid"] not in present
            and version_of(manifest) <= list_version
        ]
        return {key for manifest in gone if (key := self.remove(manifest, list_version)) is not None}

    def forget_deleted(self, key: JobKey, kind: str, name: str, uid: str, *, gone: bool) -> None:
        """Take in that this child was deleted, before its watch says so. `gone`: that it is not there any more. No
        watch tells of the end of a PodGroup, which need not be gone yet: Kubernetes' own stay until their pods are."""
        known = self._children.get(key, {}).get((kind, name))
        if known is None or known["metadata"]["uid"] != uid:
            return
        if gone:
            self.remove(known)
        elif gangs.is_pod_group(kind):
            del self._children[key][kind, name]

    def is_gone(self, uid: str) -> bool:
        """Whether the object with this uid is known to have been deleted."""
        return uid in self._deleted

    def set_report(self, key: JobKey, task_id: str, report: dict[str, Any]) -> bool:
        """Take in a supervisor's `/status`, which ends its silence; whether it says anything new."""
        memory = self.memory(key)
        new = memory.reports.get(task_id) != report
        memory.reports[task_id] = report
        return memory.silences.pop(task_id, None) is not None or new

    def forget_report(self, key: JobKey, task_id: str) -> None:
        """Forget what a supervisor said that is asked no longer: it may not hold when it is asked again."""
        if memory := self._memories.get(key):
            memory.reports.pop(task_id, None)
            memory.silences.pop(task_id, None)

    def set_silence(self, key: JobKey, task_id: str, silence: Silence) -> bool:
        """Take in that a supervisor's `/status` could not be read; whether that is new. A silence that goes on keeps
        its beginning."""
        silences = self.memory(key).silences
        old = silences.get(task_id)
        if old is not None and old.pod_uid == silence.pod_uid:
            silence = replace(silence, since=old.since)
        silences[task_id] = silence
        return silence != old

    def set_pod_event(self, key: JobKey, event: PodEvent) -> None:
        """Take in what was read of a pod's events."""
        if key in self._jobs:
            self.memory(key).pod_event = event

    def set_problem(self, key: JobKey, what: str, why: str | None) -> bool:
        """Note why an object (`Kind/name`) could not be made, or why another call (in words) fails. None means that it
        did not. Returns whether that is new."""
        if self._memories.get(key, _NOTHING).problems.get(what) == why:  # also of a job that has gone
            return False
        problems = self.memory(key).problems
        if why is None:
            del problems[what]
        else:
            problems[what] = why
        return True

    def keep_problems(self, key: JobKey, wanted: set[str]) -> bool:
        """Forget problems with what nobody wants any more; whether there were such."""
        problems = self.memory(key).problems
        stale = set(problems) - wanted
        for what in stale:
            del problems[what]
        return bool(stale)

    def forget(self, key: JobKey) -> None:
        """Forget what was told of a job that has gone, or has not been there yet. Calls that were under way may have
        told more of it since."""
        self._memories.pop(key, None)

    def _set_going_on(self, key: JobKey, goes_on: bool) -> None:
        (self._going_on.add if goes_on else self._going_on.discard)(key)
        if not goes_on:
            self._read.pop(key, None)

    def _has_gone(self, manifest: Manifest, listed_at: int | None) -> bool:
        """Whether this version of an object is known to be gone, and no later LIST has it."""
        uid = manifest["metadata"]["uid"]
        gone_at = self._deleted.get(uid)
        # A pod whose label was removed has gone from the watch only, and may come back with a newer version.
        if gone_at is None or version_of(manifest) > gone_at:
            return False
        if listed_at is None or listed_at < gone_at:
            return True
        del self._deleted[uid]
        return False

    def _tidy(self, key: JobKey) -> None:
        """Hold nothing for a job that is gone with all its pods: of its ConfigMap's and PodGroup's end no watch
        tells."""
        children = self._children.get(key)
        unwatched = (kind == "ConfigMap" or gangs.is_pod_group(kind) for kind, _ in children or ())
        if key not in self._jobs and children is not None and all(unwatched):
            del self._children[key]

    def _place(self, manifest: Manifest) -> tuple[dict[Any, Manifest], Any, JobKey] | None:
        """Shelf, name there and job of an object; None if it names no job."""
        metadata = manifest["metadata"]
        if manifest["kind"] == KIND:
            key = (metadata["namespace"], metadata["name"])
            return self._jobs, key, key
        named = labels.of(manifest).get(labels.JOB_NAME)
        if named is None and manifest["kind"] in ("Pod", kueue.KIND):  # no watch would tell what becomes of it
            return None
        # Its controller comes first: whoever may edit it can change its label.
        job = labels.controlling_job(manifest) or named
        if job is None:
            return None
        key = (metadata["namespace"], job)
        return self._children.setdefault(key, {}), (manifest["kind"], metadata["name"]), key


def _is_news_to_nobody(known: Manifest, manifest: Manifest) -> bool:
    """Whether only the version differs in what is kept: most of what a kubelet writes concerns nobody here."""
    old, new = ({**one["metadata"], "resourceVersion": ""} for one in (known, manifest))
    return old == new and {**known, "metadata": None} == {**manifest, "metadata": None}


def version_of(manifest: Manifest) -> int:
    """The version of an object, to compare with others: all are of etcd's one revision counter (KEP-5504)."""
    return int(manifest["metadata"]["resourceVersion"])
