# SPDX-License-Identifier: Apache-2.0
"""The operator's metrics, as Prometheus reads them at `/metrics`.

What happens is counted when it happens (`Observer`). The current state, such as jobs by phase, is read from the store
when somebody asks. So nothing is left of a job that is gone.
"""

import platform
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from dtjob import __version__
from dtjob.api.job import is_ours
from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.goodput import Part
from dtjob.api.status.status import Status
from dtjob.controller.cluster import JobKey
from dtjob.controller.observer import Observer, Result
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.objects.manifest import Manifest
from dtjob.plan.lifetime.time_spent import by_part, kept_ratio
from dtjob.plan.record.failure import Cause

JOB_LABELS = ("dtjob_namespace", "dtjob_name")
"""The labels that name a job. Prometheus itself sets others: job, namespace, pod and the like."""
RECONCILE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from a look that changes nothing to one that creates a job of many pods."""


class Metrics(Observer):
    """All metrics of one operator, in a registry of their own. `clock` gives seconds since the epoch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        ProcessCollector(registry=self.registry)
        build = Gauge("dtjob_build_info", "Version of dtjob; always 1.", ["version", "python"], registry=self.registry)
        build.labels(__version__, platform.python_version()).set(1)
        self._leader = Gauge(
            "dtjob_leader", "1 while this operator works, 0 while it stands by.", registry=self.registry
        )
        self._resynced = Gauge(
            "dtjob_last_resync_timestamp_seconds",
            "When everything was last listed and taken in; 0 before the first time.",
            registry=self.registry,
        )
        self._reconciles = Counter(
            "dtjob_reconciles", "Looks at a job, by how they ended.", ["result"], registry=self.registry
        )
        for result in get_args(Result):
            self._reconciles.labels(result)
        self._duration = Histogram(
            "dtjob_reconcile_duration_seconds",
            "Time that one look at a job took, calls included.",
            buckets=RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self._restarts = Counter(
            "dtjob_restarts",
            "Restarts of training, by the cause known when they were decided.",
            ["cause"],
            registry=self.registry,
        )
        self._evaluator_restarts = Counter(
            "dtjob_evaluator_restarts",
            "Restarts of evaluators, which training does not notice.",
            registry=self.registry,
        )
        self._calls = Counter(
            "dtjob_api_requests",
            "Calls to the API server, without the watches; code <error> where no answer came.",
            ["method", "resource", "code"],
            registry=self.registry,
        )

    def reconciled(self, result: Result, seconds: float) -> None:
        """Count a look at a job."""
        self._reconciles.labels(result).inc()
        self._duration.observe(seconds)

    def status_written(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Count the restarts that the new status has and the old one had not."""
        for cause, count in new_restarts(old, new).items():
            self._restarts.labels(cause).inc(count)
        before, after = (_number(_block(status, "restarts").get("evaluator")) or 0 for status in (old, new))
        self._evaluator_restarts.inc(max(0, after - before))

    def called(self, method: str, resource: str, code: str) -> None:
        """Count a call."""
        self._calls.labels(method, resource, code).inc()

    def leads(self) -> None:
        """Note that this operator works."""
        self._leader.set(1)

    def resynced(self) -> None:
        """Note that everything was listed and taken in."""
        self._resynced.set(self._clock())

    def watch(self, store: Store, queue: WorkQueue[JobKey]) -> None:
        """Read jobs and the queue's length from these from now on. To be called once."""
        self.registry.register(_Observed(store, queue))

    def answer(self, request: web.Request) -> web.Response:
        """What `/metrics` says, in the format that the scraper prefers."""
        encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encoder(self.registry), headers={"Content-Type": content_type})


class _Observed(Collector):
    def __init__(self, store: Store, queue: WorkQueue[JobKey]) -> None:
        self._store, self._queue = store, queue

    def collect(self) -> Iterator[Metric]:
        """The metrics of what is now."""
        yield GaugeMetricFamily("dtjob_workqueue_depth", "Jobs that are due and wait for a worker.", len(self._queue))
        yield from job_metrics(job for key in self._store.job_keys() if (job := self._store.job(key)) is not None)


def new_restarts(old: dict[str, Any], new: dict[str, Any]) -> dict[str, int]:
    """Restarts by cause between two statuses of a job. Together they are as many as the status counts.

    A restart whose cause turns out to be another one moves in the status and is no new one. If one begins in the same
    write, its incident says its cause. What else is new then are crashes.
    """
    before, after = _block(old, "restarts"), _block(new, "restarts")
    new_ones = int((_number(after.get("total")) or 0) - (_number(before.get("total")) or 0))
    if new_ones <= 0:
        return {}
    counts = Counts(_block(after, "causes"))
    counts.subtract(_block(before, "causes"))
    gained = +counts
    if gained.total() > new_ones:
        crashed = min(gained[Cause.SIGNAL], new_ones)
        cause = str(_block(_block(new, "internal"), "incident").get("cause") or Cause.ERROR)
        gained = +Counts({Cause.SIGNAL.value: crashed}) + Counts({cause: new_ones - crashed})
    return dict(gained)


def job_metrics(jobs: Iterable[Manifest]) -> list[Metric]:
    """Our jobs by phase and strategy, and how far each job is that has not ended."""
    by_phase: Counts[tuple[str, str]] = Counts()
    families = {
        name: GaugeMetricFamily(name, text, labels=JOB_LABELS)
        for name, text in (
            ("dtjob_job_tasks", "Tasks of a job that has not ended."),
            ("dtjob_job_ready_tasks", "Tasks of it that are up."),
            ("dtjob_job_step", "Steps that it has trained."),
            ("dtjob_job_checkpoint_step", "Step of its newest checkpoint."),
            ("dtjob_job_goodput_ratio", "Part of its time, as far as known, that went into steps that stand: 0 to 1."),
        )
    }
    spent = GaugeMetricFamily(
        "dtjob_job_time_seconds",
        "What its time went into since all its tasks first ran, without suspension.",
        labels=[*JOB_LABELS, "part"],
    )
    for job in jobs:
        if not is_ours(_block(job, "spec")):
            continue
        status = job.get("status") or {}
        phase = str(status.get("phase") or Phase.PENDING)
        by_phase[phase, str(_block(job, "spec").get("strategy", ""))] += 1
        if phase in ENDED:
            continue
        labels = [job["metadata"]["namespace"], job["metadata"]["name"]]
        for name, value in _job_values(status).items():
            if value is not None:
                families[name].add_metric(labels, value)
        goodput = Status.read({"goodput": status["goodput"]}).goodput if "goodput" in status else None
        if goodput is None:
            continue
        seconds = by_part(goodput.seconds)
        for part in Part:  # all of them: a series begins at 0
            spent.add_metric([*labels, part.value], seconds.get(part, 0.0))
        if goodput.percentage is not None and (ratio := kept_ratio(seconds)) is not None:
            families["dtjob_job_goodput_ratio"].add_metric(labels, ratio)
    counted = GaugeMetricFamily("dtjob_jobs", "Jobs that exist, by phase and strategy.", labels=["phase", "strategy"])
    for key, count in sorted(by_phase.items()):
        counted.add_metric(key, count)
    return [counted, *families.values(), spent]


def _job_values(status: dict[str, Any]) -> dict[str, float | None]:
    roles = [role for role in _block(status, "replicaStatuses").values() if isinstance(role, dict)]

    def tasks(*states: str) -> float | None:
        return sum(_number(role.get(state)) or 0 for role in roles for state in states) if roles else None

    return {
        "dtjob_job_tasks": tasks("replicas"),
        "dtjob_job_ready_tasks": tasks("active", "succeeded"),
        "dtjob_job_step": _number(_block(status, "progress").get("step")),
        "dtjob_job_checkpoint_step": _number(_block(status, "checkpoint").get("step")),
    }


def _block(value: dict[str, Any], name: str) -> dict[str, Any]:
    """A block of a manifest, which an older version or another writer may have left in any form."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None
