"""Progress: from what supervisors report to the status fields that `kubectl get dtjobs` shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.replica_specs import Role
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.children import TaskView, terminated
from dtjob.plan.report import readable

COPIED = ("step", "totalSteps", "epoch", "loss", "metrics", "stepsPerSecond", "resume", "model")


@dataclass(frozen=True)
class Progress:
    """The status' blocks `progress`, `checkpoint` and `evaluation`, empty where they are left out.

    They stay JSON: they are carried from the reports to the user, and decided on are only a step and a time.
    """

    training: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def checkpoint_step(self) -> int:
        """The step of the newest checkpoint known, -1 where there is none."""
        return int(self.checkpoint.get("step", -1))

    def next_write(self, every: timedelta, now: datetime) -> datetime | None:
        """When progress alone, written no more often than `every`, may be written again after this; None where none was
        written yet. After a time in the future, as of a clock that was set back, at once."""
        if not (written := self.training.get("time")):
            return None
        time = times.parse(written)
        return now if time > now else time + every


def of_current_attempts(views: Iterable[TaskView], reports: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The reports without those of pods that were replaced since: a checkpoint of theirs may have gone with them."""
    current, left = dict(reports), set(reports)
    for view in views:
        if not left:
            break  # few tasks are asked, and the chief stands first
        task = view.task.id
        if task in left:
            left.remove(task)
            if current[task].get("attempt", view.attempt) != view.attempt:
                del current[task]
    return current


def final_reports(views: Iterable[TaskView], reports: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The reports, and for tasks that finished the one that their supervisor left as its termination message."""
    merged = dict(reports)
    for view in views:
        left = last_words(view.pod) if view.pod else None
        if left:
            merged[view.task.id] = {**merged.get(view.task.id, {}), **left}
    return merged


def last_words(pod: Manifest) -> dict[str, Any] | None:
    """The last status that a supervisor which ended with 0 left as its termination message, None where there is
    none."""
    end = terminated(pod)
    if end is None or end.get("exitCode") != 0:
        return None
    try:
        left = json.loads(end.get("message") or "null")
    except (ValueError, RecursionError):
        return None  # a message of the image's own
    return left if isinstance(left, dict) else None


def progress_status(job: Job, old: Progress, reports: Mapping[str, dict[str, Any]], now: datetime) -> Progress:
    """The progress that these reports tell of; what none of them has anything newer about stays as it was."""
    chief = readable(reports.get(topology.chief_task(job).id, {}))
    evaluator = readable(reports.get(f"{Role.EVALUATOR.value}-0", {}))
    checkpoint = chief.get("checkpoint")
    return Progress(
        training=_training(chief, old.training, now) if "step" in chief else old.training,
        checkpoint=checkpoint if checkpoint and checkpoint["step"] >= old.checkpoint_step else old.checkpoint,
        evaluation=evaluator.get("evaluation", old.evaluation),
    )


def _training(chief: Mapping[str, Any], old: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What the chief says, with the time of the first look at which it said that."""
    training = {name: chief[name] for name in COPIED if name in chief}
    total = chief.get("totalSteps")
    if total:
        training["percent"] = f"{min(100, 100 * chief['step'] // total)}%"
    if chief.get("etaSeconds") is not None:
        training["etaSeconds"] = chief["etaSeconds"]
        training["eta"] = duration(chief["etaSeconds"])
    without_time = {name: value for name, value in old.items() if name != "time"}
    return {**training, "time": old["time"] if without_time == training else times.rfc3339(now)}


def duration(seconds: float) -> str:
    """Seconds in the form of kubectl's ages: `45s`, `3m20s`, `2h5m`, `3d4h`."""
    left = max(0, round(seconds))
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
