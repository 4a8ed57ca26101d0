# SPDX-License-Identifier: Apache-2.0
"""What the page gets of a job, as JSON. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dtjob.client.verbs.pods import in_order, newest, task_of
from dtjob.client.verbs.reports import CELLS, cells, shown_tasks
from dtjob.client.verbs.words import facts, phase_of

Object = Mapping[str, Any]
RUNNING = "Running"


def row(job: Object) -> dict[str, Any]:
    """The job in the list. What is not known is null."""
    status, metadata = job.get("status") or {}, job["metadata"]
    progress = status.get("progress") or {}
    now = progress if status.get("phase") == RUNNING else {}
    return {
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "phase": phase_of(job),
        "reason": status.get("reason"),
        "step": progress.get("step"),
        "totalSteps": progress.get("totalSteps"),
        "percentage": progress.get("percentage"),
        "stepsPerSecond": now.get("stepsPerSecond"),
        "inputWait": now.get("inputWaitPercentage"),
        "secondsLeft": now.get("estimatedRemainingSeconds"),
        "goodput": (status.get("goodput") or {}).get("percentage"),
        "restarts": (status.get("restarts") or {}).get("total") or 0,
        "created": metadata.get("creationTimestamp"),
    }


def detail(
    job: Object, pods: Sequence[Object], reports: Mapping[str, Object], why: str = "", now: datetime | None = None
) -> dict[str, Any]:
    """The job in its own view. `why`: why a task could not be asked for its step."""
    status, now = job.get("status") or {}, now or datetime.now(UTC)
    tasks = shown_tasks(pods)
    return {
        **row(job),
        "message": status.get("message"),
        "facts": [*facts(job, now)],
        "incidents": status.get("incidents") or [],
        "conditions": status.get("conditions") or [],
        "taskColumns": CELLS,
        "tasks": [cells(pod, reports.get(task_of(pod), {}), now) for pod in tasks],
        "moreTasks": len(newest(in_order(pods))) - len(tasks),
        "why": why,
    }


def shown_manifest(job: Object) -> dict[str, Any]:
    """The job without what only machines read."""
    metadata = {name: value for name, value in job["metadata"].items() if name != "managedFields"}
    status = {name: value for name, value in (job.get("status") or {}).items() if name != "internal"}
    return {**job, "metadata": metadata, "status": status}


def progress_values(progress: Object) -> dict[str, Any]:
    """What `status.progress` adds to the curves."""
    return {
        **{str(one.get("name")): one.get("value") for one in progress.get("metrics") or ()},
        "steps_per_second": progress.get("stepsPerSecond"),
    }


def report_values(report: Object) -> dict[str, Any]:
    """What the report of a chief adds to the curves."""
    metrics = report.get("metrics")
    return {
        **(metrics if isinstance(metrics, Mapping) else {}),
        "loss": report.get("loss"),
        "steps_per_second": report.get("stepsPerSecond"),
    }


def evaluation_values(evaluation: Object, prefix: str) -> Iterator[tuple[str, Any]]:
    """What `status.evaluation` adds to the curves, with this before the names."""
    for one in evaluation.get("metrics") or ():
        yield f"{prefix} {one.get('name')}", one.get("value")
