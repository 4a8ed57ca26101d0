# SPDX-License-Identifier: Apache-2.0
"""A job's status in words, from the job as the API server has it. Pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dtjob.api.names import CLAIM_SUFFIX
from dtjob.api.words import counted
from dtjob.times import duration

Object = Mapping[str, Any]
_LONGEST_LABEL = 14
_TIME_WIDTH = len("2026-11-21 10:00:00")
_FOR_ITS_USER = ("ImageMissing", "InvalidSpec")
"""Reasons of a job that waits for its user. Nothing happens by itself."""
MUCH_WAITING = 20
"""From this percentage of waiting for data on, a user is told what to do."""
MORE_WORKERS = "add data workers (spec.replicaSpecs.data.replicas), if the log says that they make the examples"
FASTER_PIPELINE = "use cache() and prefetch(), or move the input to data workers (spec.replicaSpecs.data)"
_OF_A_TERMINAL = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b]*(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-9;:?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def harmless(text: str) -> str:
    """The text without what a terminal obeys: the words of a program may have come from anybody."""
    return _OF_A_TERMINAL.sub("", text)


def since(text: str | None, now: datetime) -> str:
    """How long ago this time of an object was, empty if there is none."""
    if not text:
        return ""
    try:
        return duration((now - datetime.fromisoformat(text)).total_seconds())
    except ValueError:
        return ""


def phase_of(job: Object) -> str:
    """The phase, Pending if the operator has written none."""
    return str((job.get("status") or {}).get("phase") or "Pending")


def is_being_deleted(job: Object) -> bool:
    """Whether somebody has deleted the job, and something still holds it, such as a pod that ends slowly."""
    return "deletionTimestamp" in job["metadata"]


def is_stuck(job: Object) -> bool:
    """Whether the job goes on only if its user does what its message says."""
    return (job.get("status") or {}).get("reason") in _FOR_ITS_USER


def step_text(status: Object) -> str:
    """How far training is: `251/690`, empty before the first report."""
    progress = status.get("progress") or {}
    if "step" not in progress:
        return ""
    total = progress.get("totalSteps")
    return f"{progress['step']}/{total}" if total else str(progress["step"])


def metrics_text(status: Object) -> str:
    """The metrics of the last report: `loss 0.5, accuracy 0.9`."""
    return _metrics((status.get("progress") or {}).get("metrics"))


def _metrics(metrics: Any) -> str:
    return ", ".join(f"{one['name']} {one['value']}" for one in metrics or ())


def summary(job: Object) -> str:
    """One line: the phase and the reason, with the message."""
    status = job.get("status") or {}
    reason = f" ({status['reason']})" if status.get("reason") else ""
    message = f": {status['message']}" if status.get("message") else ""
    if not status.get("phase"):
        message = ": the operator has not written a status; `dtjob doctor` says whether it runs"
    deleted = ", is being deleted" if is_being_deleted(job) else ""
    return harmless(f"{phase_of(job)}{deleted}{reason}{message}")


def status_lines(job: Object, now: datetime | None = None) -> Iterator[str]:
    """The whole status, a line for each thing that is known."""
    yield f"{job['metadata']['name']}: {summary(job)}"
    for label, text in facts(job, now):
        yield harmless(f"  {label:<{_LONGEST_LABEL}} {text}")
    yield from story_lines(job.get("status") or {})


def facts(job: Object, now: datetime | None = None) -> Iterator[tuple[str, str]]:
    """Each thing that is known beside the phase: its label and its text."""
    status, spec = job.get("status") or {}, job.get("spec") or {}
    found = _facts(status, spec, job, now or datetime.now(UTC))
    yield from ((label, text) for label, text in found if text)


def story_lines(status: Object) -> Iterator[str]:
    """The incidents of a job between its start and its end, a line for each. Nothing if there was no incident."""
    incidents = status.get("incidents") or ()
    if not incidents:
        return
    yield "  story (UTC)"
    yield from _told(status.get("startTime"), "started")
    if earlier := incidents[0]["number"] - 1:
        yield f"    {'':{_TIME_WIDTH}}  {counted(earlier, 'earlier restart')} not kept"
    for one in incidents:
        yield from _told(one.get("time"), _incident(one))
    yield from _told(status.get("completionTime"), f"{status.get('phase')} ({status.get('reason')})")


def _told(time: Any, what: str) -> Iterator[str]:
    if time:
        yield harmless(f"    {str(time).replace('T', ' ').removesuffix('Z'):{_TIME_WIDTH}}  {what}")


def _incident(incident: Object) -> str:
    """What happened, how far training had come and went back, and what that cost."""
    reached, back, lost = (incident.get(name) for name in ("fromStep", "toStep", "secondsLost"))
    parts = [f"{incident['reason']}: {incident['task']} {incident.get('message', '')}".rstrip()]
    if back is not None:
        parts.append(f"step {reached} -> {back}" if reached not in (None, back) else f"went on from step {back}")
    elif reached is not None:
        parts.append(f"at step {reached}")
    parts += [f"{duration(lost)} lost"] if lost is not None else []
    return "; ".join(parts)


def _facts(status: Object, spec: Object, job: Object, now: datetime) -> Iterator[tuple[str, str]]:
    ready = status.get("ready")
    yield "strategy", str(spec.get("strategy", ""))
    yield "tasks", f"{ready} run or have finished" if ready else ""
    data = (status.get("replicaStatuses") or {}).get("data") if status.get("phase") == "Running" else None
    yield "data workers", f"{data.get('active', 0)} of {data.get('replicas', 0)} run" if data else ""
    yield "step", _step(status)
    yield "input", _input(status, "data" in (spec.get("replicaSpecs") or {}))
    yield "metrics", metrics_text(status)
    yield "checkpoint", _checkpoint(job, now)
    yield "evaluation", _evaluation(status.get("evaluation") or {})
    yield "model", str((status.get("progress") or {}).get("model") or "")
    yield "restarts", _restarts(status.get("restarts") or {})
    yield "last failure", _failure(status.get("lastFailure") or {}, now)
    queue = status.get("queue") or {}
    yield "queue", " ".join(str(queue[name]) for name in ("name", "state", "message") if queue.get(name))
    goodput = (status.get("goodput") or {}).get("percentage")
    yield "goodput", "" if goodput is None else f"{goodput} % of the time went into steps that count"
    yield "started", _ago(status.get("startTime"), now)
    yield "ended", _ago(status.get("completionTime"), now)
    yield "age", since(job["metadata"].get("creationTimestamp"), now)


def _step(status: Object) -> str:
    progress = status.get("progress") or {}
    if "step" not in progress:
        return ""
    total, percentage = progress.get("totalSteps"), progress.get("percentage")
    parts = [f"{progress['step']} of {total}" if total else str(progress["step"])]
    parts += [f"{percentage} %"] if percentage is not None else []
    parts += [f"epoch {progress['epoch']}"] if progress.get("epoch") else []
    if status.get("phase") == "Running":
        parts += [f"{progress['stepsPerSecond']} steps/s"] if progress.get("stepsPerSecond") else []
        left = progress.get("estimatedRemainingSeconds")
        parts += [f"about {duration(left)} left"] if left is not None else []
    return ", ".join(parts)


def _input(status: Object, has_data_workers: bool) -> str:
    """How fast examples come, for how long steps wait for them, and what to do if that is long."""
    progress = status.get("progress") or {}
    if status.get("phase") != "Running":
        return ""
    parts = [f"{progress['examplesPerSecond']} examples/s"] if progress.get("examplesPerSecond") else []
    waits = progress.get("inputWaitPercentage")
    if waits is not None:
        advice = MORE_WORKERS if has_data_workers else FASTER_PIPELINE
        parts += [f"steps wait {waits} % of the time for data{f': {advice}' if waits >= MUCH_WAITING else ''}"]
    return ", ".join(parts)


def _checkpoint(job: Object, now: datetime) -> str:
    status, spec = job.get("status") or {}, job.get("spec") or {}
    storage = (spec.get("checkpoint") or {}).get("storage")
    if storage is None:
        return "none: the job has no checkpoint" if spec.get("program") else ""
    where = storage.get("uri") or _volume(storage.get("volume") or _claim_of(job))
    saved = status.get("checkpoint") or {}
    if "step" not in saved:
        return f"none yet, in {where}"
    ago = since(saved.get("time"), now)
    return f"step {saved['step']}{f', {ago} ago' if ago else ''}, in {where}"


def _claim_of(job: Object) -> Object:
    """The volume source of the claim that the operator made."""
    return {"persistentVolumeClaim": {"claimName": f"{job['metadata']['name']}{CLAIM_SUFFIX}"}}


def _volume(volume: Object) -> str:
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    return f"claim {claim}" if claim else f"a volume ({', '.join(volume)})"


def _evaluation(evaluation: Object) -> str:
    if "step" not in evaluation:
        return ""
    best = evaluation.get("best") or {}
    value = f" with {best['value']}" if best.get("value") else ""
    better = f"; best at step {best['step']}{value}" if "step" in best else ""
    return f"step {evaluation['step']}: {_metrics(evaluation.get('metrics'))}{better}"


def _restarts(restarts: Object) -> str:
    causes = ", ".join(f"{cause} {count}" for cause, count in (restarts.get("causes") or {}).items())
    total = restarts.get("total")
    return f"{total}{f' ({causes})' if causes else ''}" if total else ""


def _failure(failure: Object, now: datetime) -> str:
    if not failure:
        return ""
    parts = [str(failure[name]) for name in ("task", "message") if failure.get(name)]
    code = failure.get("exitCode")
    parts += [f"exit code {code}"] if code is not None and not failure.get("message") else []
    parts += [f"pod {failure['pod']}"] if failure.get("pod") else []
    parts += [f"node {failure['node']}"] if failure.get("node") else []
    ago = since(failure.get("time"), now)
    parts += [f"{ago} ago"] if ago else []
    # An exception is in the message already.
    lines = [] if failure.get("exception") else str(failure.get("logTail") or "").strip().splitlines()
    return ", ".join(parts) + (f": {lines[-1]}" if lines else "")


def _ago(text: Any, now: datetime) -> str:
    ago = since(text, now)
    return f"{ago} ago" if ago else ""
