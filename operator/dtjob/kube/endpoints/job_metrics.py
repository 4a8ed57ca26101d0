# SPDX-License-Identifier: Apache-2.0
"""The metrics of jobs, read from their statuses and pods when Prometheus asks.

All metrics of one job are gauges. A restart discards steps, a cause may be corrected, and a job of the same name may
begin again. What only rises is in `metrics.py`.
"""

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from dtjob import times
from dtjob.api.job import is_ours
from dtjob.api.phase import ENDED, Phase
from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.status.goodput import Part
from dtjob.api.status.status import Status
from dtjob.controller.cluster import JobKey
from dtjob.objects.manifest import Manifest
from dtjob.plan.diagnosis.pending import waiting_word
from dtjob.plan.diagnosis.reachability import STATUS_REACHABLE
from dtjob.plan.failure.budget import restarts_in_a_row
from dtjob.plan.lifetime.time_spent import by_part, kept_ratio

JOB_LABELS = ("job_namespace", "job_name")
"""The labels that name a job. Prometheus itself sets others: job, namespace, pod and the like."""
PodsOf = Callable[[JobKey], Iterable[Manifest]]
"""What is known of a job's children, which other objects may be among."""
_DAY = 86400
_Sample = tuple[str, tuple[str, ...], float | None]
"""The name of a metric, the values of its labels beside those of the job, and its value. None: not known."""

_FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "dtjob_job_phase": ("1 for the phase of the job, with its reason.", ("phase", "reason")),
    "dtjob_job_tasks": ("Tasks of the job.", ()),
    "dtjob_job_ready_tasks": ("Tasks that run or have finished.", ()),
    "dtjob_job_waiting_tasks": ("Tasks whose pods do not run yet, by what they wait for.", ("reason",)),
    "dtjob_job_step": ("Training steps that are done.", ()),
    "dtjob_job_total_steps": ("Training steps of the whole training.", ()),
    "dtjob_job_checkpoint_step": ("Training step of the newest checkpoint.", ()),
    "dtjob_job_checkpoint_timestamp_seconds": (
        "When the newest checkpoint was saved, in seconds since the epoch.",
        (),
    ),
    "dtjob_job_status_reachable": (
        "1 if the status of the chief can be read, 0 if not, with the kind of error.",
        ("reason",),
    ),
    "dtjob_job_restarts": ("Restarts of training, by cause. A cause may be corrected later.", ("cause",)),
    "dtjob_job_restarts_without_progress": (
        "Restarts in a row without a newer checkpoint or a long run, with the cause of the last one.",
        ("cause",),
    ),
    "dtjob_job_goodput_ratio": ("Share of the known time that was spent on steps that count, 0 to 1.", ()),
    "dtjob_job_time_seconds": (
        "Time since all tasks first ran, without suspensions, by what it was spent on.",
        ("part",),
    ),
}


def job_metrics(jobs: Iterable[Manifest], pods_of: PodsOf, now: datetime) -> list[Metric]:
    """Our jobs by phase and strategy, and how each job stands that has not ended."""
    by_phase: Counts[tuple[str, str]] = Counts()
    families = {
        name: GaugeMetricFamily(name, text, labels=(*JOB_LABELS, *more)) for name, (text, more) in _FAMILIES.items()
    }
    for job in jobs:
        if not is_ours(block(job, "spec")):
            continue
        status = job.get("status") or {}
        phase = str(status.get("phase") or Phase.PENDING)
        by_phase[phase, str(block(job, "spec").get("strategy", ""))] += 1
        if phase in ENDED:
            continue
        key = (job["metadata"]["namespace"], job["metadata"]["name"])
        for name, labels, value in _samples(job, phase, status, pods_of, now):
            if value is not None:
                families[name].add_metric((*key, *labels), value)
    counted = GaugeMetricFamily("dtjob_jobs", "Jobs that exist, by phase and strategy.", labels=["phase", "strategy"])
    for counted_by, count in sorted(by_phase.items()):
        counted.add_metric(counted_by, count)
    return [counted, *families.values()]


def _samples(job: Manifest, phase: str, status: dict[str, Any], pods_of: PodsOf, now: datetime) -> Iterator[_Sample]:
    yield "dtjob_job_phase", (phase, str(status.get("reason") or "")), 1
    yield from _tasks(job, status, pods_of)
    progress, checkpoint = block(status, "progress"), block(status, "checkpoint")
    yield "dtjob_job_step", (), number(progress.get("step"))
    yield "dtjob_job_total_steps", (), number(progress.get("totalSteps"))
    yield "dtjob_job_checkpoint_step", (), number(checkpoint.get("step"))
    yield "dtjob_job_checkpoint_timestamp_seconds", (), _seconds(checkpoint.get("time"))
    yield from _reachable(status)
    yield from _restarts(job, status, now)
    yield from _goodput(status)


def _tasks(job: Manifest, status: dict[str, Any], pods_of: PodsOf) -> Iterator[_Sample]:
    roles = [role for role in block(status, "replicaStatuses").values() if isinstance(role, dict)]
    if not roles:
        return

    def count(*states: str) -> float:
        return sum(number(role.get(state)) or 0 for role in roles for state in states)

    yield "dtjob_job_tasks", (), count("replicas")
    yield "dtjob_job_ready_tasks", (), count("active", "succeeded")
    if not count("pending"):  # most jobs: their pods need no look
        return
    uid, key = job["metadata"].get("uid"), (job["metadata"]["namespace"], job["metadata"]["name"])
    waiting = Counts(word for one in pods_of(key) if (word := waiting_word(one, uid)))
    for reason, tasks in waiting.items():
        yield "dtjob_job_waiting_tasks", (reason,), tasks


def _reachable(status: dict[str, Any]) -> Iterator[_Sample]:
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("type") == STATUS_REACHABLE:
            said = {"True": 1.0, "False": 0.0}.get(str(one.get("status")))
            yield "dtjob_job_status_reachable", (str(one.get("reason") or ""),), said
            return


def _restarts(job: Manifest, status: dict[str, Any], now: datetime) -> Iterator[_Sample]:
    for cause, count in block(block(status, "restarts"), "causes").items():
        yield "dtjob_job_restarts", (str(cause),), number(count)
    if "incident" not in block(status, "internal"):
        return
    read = Status.read({name: status[name] for name in ("internal", "checkpoint", "conditions") if name in status})
    if (incident := read.internal.incident) is None:
        return
    longest = number(block(block(block(job, "spec"), "failurePolicy"), "backoff").get("maxSeconds"))
    backoff = Backoff() if longest is None else Backoff.model_construct(max_seconds=min(int(longest), _DAY))
    yield "dtjob_job_restarts_without_progress", (incident.cause,), restarts_in_a_row(read, backoff, now) or None


def _goodput(status: dict[str, Any]) -> Iterator[_Sample]:
    goodput = Status.read({"goodput": status["goodput"]}).goodput if "goodput" in status else None
    if goodput is None:
        return
    seconds = by_part(goodput.seconds)
    for part in Part:
        yield "dtjob_job_time_seconds", (part.value,), seconds.get(part) or None
    if goodput.percentage is not None:
        yield "dtjob_job_goodput_ratio", (), kept_ratio(seconds)


def block(value: dict[str, Any], name: str) -> dict[str, Any]:
    """A block of a manifest, which another writer may have left in any form; empty if it is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def number(value: Any) -> float | None:
    """A number of a manifest; None if it is none."""
    return value if isinstance(value, int | float) else None


def _seconds(text: Any) -> float | None:
    """A time of a manifest in seconds since the epoch; None if it is none."""
    try:
        return times.parse(text).timestamp()
    except (TypeError, ValueError, AttributeError):
        return None
