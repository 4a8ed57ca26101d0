# SPDX-License-Identifier: Apache-2.0
"""Progress: the blocks `progress`, `checkpoint` and `evaluation` of the status, from reports."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.block import whole
from dtjob.api.status.progress import (
    BestCheckpoint,
    EvaluationResult,
    Progress,
    SavedCheckpoint,
    metric_list,
    number_text,
    speed_text,
)
from dtjob.api.status.status import Status
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import PodState, TaskView, facts_of
from dtjob.plan.seen.report import read_report


def latest_reports(views: Iterable[TaskView], reports: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The reports as `read_report` reads them, and of these tasks no others than their supervisors' last.

    The report of a pod that was replaced since does not count: its checkpoint may have gone with it. The termination
    message of a supervisor that finished counts. In a job without program the message is the image's own. If the pod of
    a finished task is gone, its last words are in the status already. What it said before them is older.
    """
    found = dict(reports)
    for view in views:
        task = view.task.id
        replaced = found.get(task, {}).get("attempt", view.attempt) != view.attempt
        if replaced or (view.pod is None and view.state is PodState.SUCCEEDED):
            found.pop(task, None)
        if view.pod and view.supervised and (left := last_words(view.pod)):
            found[task] = {**found.get(task, {}), **left}
    return {task: read_report(report) for task, report in found.items()}


def last_words(pod: Manifest) -> dict[str, Any] | None:
    """The last status that a supervisor which ended with 0 left as its termination message, None if there is
    none."""
    end = facts_of(pod).end
    if end is None or end.get("exitCode") != 0:
        return None
    try:
        left = json.loads(end.get("message") or "null")
    except (ValueError, RecursionError):
        return None  # a message of the image's own
    return left if isinstance(left, dict) else None


def with_progress(job: Job, status: Status, reports: Mapping[str, dict[str, Any]], now: datetime) -> Status:
    """The status with the progress that these reports tell of; what none of them has anything newer about stays as it
    was."""
    chief = reports.get(topology.chief_task(job).id, {})
    evaluator = reports.get(f"{Role.EVALUATOR.value}-0", {})
    if not chief and not evaluator:
        return status
    # The end of a process knows better than its last report.
    tells = "step" in chief and status.phase is not Phase.FAILED
    progress = _training(chief, status.progress, now) if tells else status.progress
    saved, result = saved_checkpoint(chief), evaluator.get("evaluation")
    newer = saved is not None and saved.step >= status.checkpoint_step
    evaluation = _evaluation(result) if result else status.evaluation
    return status.but(progress=progress, checkpoint=saved if newer else status.checkpoint, evaluation=evaluation)


def failed_at(status: Status, step: int | None, now: datetime) -> Status:
    """The status of a job whose process has failed after this step, as its end tells. None: it tells of no step."""
    progress = status.progress or Progress(step=-1)
    if step is None or step <= progress.step:
        return status
    percentage = _percentage(step, progress.total_steps)
    return status.but(progress=progress.but(step=step, percentage=percentage, last_updated_time=whole(now)))


def saved_checkpoint(report: Mapping[str, Any]) -> SavedCheckpoint | None:
    """The newest checkpoint that a report (`report.py`) tells of."""
    saved = report.get("checkpoint") or {}
    if "step" not in saved:
        return None
    return SavedCheckpoint(step=saved["step"], time=whole(times.parse(saved["time"])) if saved.get("time") else None)


def next_write(progress: Progress | None, every: timedelta, now: datetime) -> datetime | None:
    """When progress alone, written no more often than `every`, may be written again after this; None if none was
    written yet. After a time in the future, as of a clock that was set back, at once."""
    if progress is None or progress.last_updated_time is None:
        return None
    time = progress.last_updated_time
    return now if time > now else time + every


def only_progress_differs(status: Status, written: Status) -> bool:
    """Whether the status says no more than the one that is written, but for how far training is."""
    same = {name: getattr(written, name) for name in ("progress", "checkpoint", "evaluation")}
    return status.but(**same) == written


def _training(chief: Mapping[str, Any], old: Progress | None, now: datetime) -> Progress:
    """What the chief says, with the time of the first look at which it said that."""
    step, total, eta, speed = (chief.get(name) for name in ("step", "totalSteps", "etaSeconds", "stepsPerSecond"))
    examples, waits = chief.get("examplesPerSecond"), chief.get("inputWait")
    loss = {"loss": chief["loss"]} if "loss" in chief else {}
    said = Progress(
        step=step or 0,
        total_steps=total,
        epoch=chief.get("epoch"),
        stage=chief.get("stage"),
        percentage=_percentage(step or 0, total),
        estimated_remaining_seconds=None if eta is None else round(eta),
        steps_per_second=None if speed is None else speed_text(speed),
        examples_per_second=None if examples is None else speed_text(examples),
        input_wait_percentage=None if waits is None else round(100 * waits),
        metrics=metric_list({**loss, **(chief.get("metrics") or {})}),
        resume=chief.get("resume"),
        model=chief.get("model"),
        last_updated_time=old.last_updated_time if old else None,
    )
    if old is not None and old.last_updated_time is not None:
        said = old.but(**{name: getattr(said, name) for name in Progress.model_fields})
        if said == old:
            return old
    return said.but(last_updated_time=whole(now))


def _percentage(step: int, total: int | None) -> int | None:
    return max(0, min(100, 100 * step // total)) if total and total > 0 else None


def _evaluation(result: Mapping[str, Any]) -> EvaluationResult:
    best = result.get("best") or {}
    value = best.get("value")
    return EvaluationResult(
        step=result["step"],
        metrics=metric_list(result.get("metrics") or {}),
        best=BestCheckpoint(step=best["step"], value=None if value is None else number_text(value))
        if "step" in best
        else None,
    )
