"""What must hold of the operator at every single call, whatever happened before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import KIND, Job
from dtjob.api.phase import ENDED
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import chief_task, evaluator_follows_chief
from dtjob.plan.children import ended, terminated

Objects = Mapping[tuple[str, str], Manifest]


class Rules:
    """Raises AssertionError at the call that breaks a rule. Also counts, for tests that compare with what they did."""

    def __init__(self) -> None:
        self.charged_ever = 0
        self.restarts_written = 0

    def check_create(self, manifest: Manifest, objects: Objects) -> None:
        """Only for a job that is there and has not ended, and only the attempt that its status names already."""
        job = _owner(manifest, objects)
        assert job is not None, "created for a job that is gone"
        status = job.get("status") or {}
        if manifest["kind"] != "Pod":
            return
        last = status.get("phase") == "Succeeded" and "program" in job["spec"]  # its evaluation may be left to be made
        only = "evaluator-0" if last else ""
        ended_creates = status.get("phase") in ENDED and labels.task_id(manifest) != only
        assert not ended_creates, f"an ended job created {manifest['metadata']['name']}"
        task, attempt = labels.task_id(manifest), labels.attempt(manifest)
        assert attempt == status.get("attempts", {}).get(task, 0), f"{task}: attempt {attempt} is not written ahead"
        if affinity := manifest["spec"].get("affinity"):
            (term,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            chief = chief_task(Job.model_validate(job)).id
            follows = term["labelSelector"]["matchLabels"][labels.ATTEMPT]
            assert follows == str(status.get("attempts", {}).get(chief, 0)), "the evaluator follows an earlier chief"
        siblings = [one for one in _pods(job, objects) if labels.task_id(one) == task]
        if task == chief_task(Job.model_validate(job)).id:
            assert all(ended(one) for one in siblings), "the chief task has two pods that have not ended"
        for one in siblings:
            resolves = labels.SERVING in labels.of(one) and not _dns_gone(one)
            assert not resolves, f"{one['metadata']['name']} still has the host name of {manifest['metadata']['name']}"

    def check_touch(self, stored: Manifest, objects: Objects) -> None:
        """Only what the job owns, and of a job that goes on only what has a successor."""
        job = _owner(stored, objects)
        assert job is not None, f"{stored['kind']} {stored['metadata']['name']} is not ours"
        status = job.get("status") or {}
        if stored["kind"] == "Pod" and status.get("phase") not in ENDED:
            current = status.get("attempts", {}).get(labels.task_id(stored), 0)
            assert labels.attempt(stored) < current, f"{stored['metadata']['name']} is the current attempt"

    def check_status(self, job: Manifest, new: dict[str, Any], now: datetime, objects: Objects) -> None:
        """Attempts and counts only grow, each restart is counted once, and an end is an end."""
        old = job.get("status") or {}
        if old.get("phase") in ENDED:
            kept = ("phase", "reason", "message", "completionTime", "firstFailure")
            assert {name: old.get(name) for name in kept} == {name: new.get(name) for name in kept}
            assert _but_the_evaluator(old, "attempts") == _but_the_evaluator(new, "attempts")
            assert _but_the_evaluator(old, "restarts") == _but_the_evaluator(new, "restarts")
            return
        bumped = {task: _attempt(new, task) - _attempt(old, task) for task in new.get("attempts", {})}
        assert set(old.get("attempts", {})) <= set(new.get("attempts", {}))
        assert set(bumped.values()) <= {0, 1}, f"attempts {bumped}"
        replaced = {task for task, step in bumped.items() if step and task != "evaluator-0"}
        current = [one for one in _pods(job, objects) if labels.attempt(one) == _attempt(old, labels.task_id(one))]
        well = {labels.task_id(one) for one in current if (terminated(one) or {}).get("exitCode") == 0}
        self._check_counts(old, new, replaced, well, now)
        self._check_evaluator(job, old, new, bumped)
        budget = job["spec"].get("failurePolicy", {}).get("maxRestarts", 10)
        charged = (new.get("incident") or {}).get("charged", 0)
        assert charged <= budget, f"{charged} charged restarts of {budget}"
        self.charged_ever += max(0, charged - (old.get("incident") or {}).get("charged", 0))

    def _check_evaluator(
        self, job: dict[str, Any], old: dict[str, Any], new: dict[str, Any], bumped: dict[str, int]
    ) -> None:
        """Its own failures are counted; where it only follows the chief, with whom it shares a volume, nothing is."""
        counted = [(status.get("restarts") or {}).get("evaluator", 0) for status in (old, new)]
        step, replaced = counted[1] - counted[0], bumped.get("evaluator-0", 0)
        if step != replaced:
            model = Job.model_validate(job)
            follows = bool(bumped.get(chief_task(model).id)) and evaluator_follows_chief(model)
            assert (follows, step, replaced) == (True, 0, 1), "an evaluator's restart is not counted"

    def _check_counts(
        self, old: dict[str, Any], new: dict[str, Any], replaced: set[str], well: set[str], now: datetime
    ) -> None:
        """`replaced` are training tasks. Those that ended `well` and only come back since the chief does may do so at
        any time, uncounted."""
        before, after = old.get("restarts") or {}, new.get("restarts") or {}
        step = after.get("total", 0) - before.get("total", 0)
        assert after.get("total", 0) == sum(after.get("causes", {}).values())
        assert step in (0, 1)
        self.restarts_written += step
        assert not step or replaced, "a restart was counted and none was written ahead"
        if replaced - well and not step:
            began = times.parse(new["incident"]["startedAt"])
            assert now - began <= timedelta(seconds=41), "a restart was not counted"


def _but_the_evaluator(status: dict[str, Any], block: str) -> dict[str, Any]:
    counts = (status.get(block) or {}).items()
    return {name: count for name, count in counts if name not in ("evaluator", "evaluator-0")}


def _attempt(status: dict[str, Any], task: str) -> int:
    return int(status.get("attempts", {}).get(task, 0))


def _owner(manifest: Manifest, objects: Objects) -> Manifest | None:
    uid = labels.controller_uid(manifest)
    return next((one for (kind, _), one in objects.items() if kind == KIND and one["metadata"]["uid"] == uid), None)


def _pods(job: Manifest, objects: Objects) -> list[Manifest]:
    uid = job["metadata"]["uid"]
    return [one for (kind, _), one in objects.items() if kind == "Pod" and labels.controller_uid(one) == uid]


def _dns_gone(pod: Manifest) -> bool:
    """Whether no EndpointSlice lists the pod any more: its phase says so, not its training container."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
