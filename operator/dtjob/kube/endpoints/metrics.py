# SPDX-License-Identifier: Apache-2.0
"""The operator's metrics, as Prometheus reads them at `/metrics`.

What happens is counted when it happens (`Observer`). The current state, such as jobs by phase, is read from the store
when somebody asks. So nothing is left of a job that is gone.
"""

import platform
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, get_args

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from dtjob import __version__
from dtjob.controller.cluster import JobKey
from dtjob.controller.observer import Observer, Result
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.endpoints.job_metrics import block, job_metrics, number
from dtjob.plan.record.failure import Cause

disable_created_metrics()  # type: ignore[no-untyped-call]  # one series less for each counter
RECONCILE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from a look that changes nothing to one that creates a job of many pods."""


class Metrics(Observer):
    """All metrics of one operator, in a registry of their own. `clock` gives seconds since the epoch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.registry = CollectorRegistry()
        self._clock = clock
        ProcessCollector(registry=self.registry)
        build = Gauge(
            "dtjob_build_info",
            "Version of the operator and of Python. Always 1.",
            ["version", "python"],
            registry=self.registry,
        )
        build.labels(__version__, platform.python_version()).set(1)
        self._leader = Gauge("dtjob_leader", "1 if this operator works, 0 if it stands by.", registry=self.registry)
        self._resynced = Gauge(
            "dtjob_last_resync_timestamp_seconds",
            "When the operator last listed all objects, in seconds since the epoch; 0 before the first time.",
            registry=self.registry,
        )
        self._reconciles = Counter(
            "dtjob_reconciles", "Reconciles of a job, by result.", ["result"], registry=self.registry
        )
        for result in get_args(Result):
            self._reconciles.labels(result)
        self._duration = Histogram(
            "dtjob_reconcile_duration_seconds",
            "Duration of a reconcile, with its calls to the API server.",
            buckets=RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self._restarts = Counter(
            "dtjob_restarts",
            "Restarts of training, by the cause that was known first.",
            ["cause"],
            registry=self.registry,
        )
        for cause in Cause:  # at 0, so that the first restart is seen as an increase
            self._restarts.labels(cause)
        self._evaluator_restarts = Counter(
            "dtjob_evaluator_restarts",
            "Restarts of evaluators. They do not interrupt training.",
            registry=self.registry,
        )
        self._calls = Counter(
            "dtjob_api_requests",
            "Calls to the API server, without watches. The code is <error> if no answer came.",
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
        before, after = (number(block(status, "restarts").get("evaluator")) or 0 for status in (old, new))
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
        yield GaugeMetricFamily("dtjob_workqueue_depth", "Jobs that wait for a worker of the queue.", len(self._queue))
        jobs = (job for key in self._store.job_keys() if (job := self._store.job(key)) is not None)
        yield from job_metrics(jobs, lambda key: self._store.children(key).objects, datetime.now(UTC))


def new_restarts(old: dict[str, Any], new: dict[str, Any]) -> dict[str, int]:
    """Restarts by cause between two statuses of a job. Together they are as many as the status counts.

    A restart whose cause turns out to be another one moves in the status and is no new one. If one begins in the same
    write, its incident says its cause. What else is new then are crashes.
    """
    before, after = block(old, "restarts"), block(new, "restarts")
    new_ones = int((number(after.get("total")) or 0) - (number(before.get("total")) or 0))
    if new_ones <= 0:
        return {}
    counts = Counts(block(after, "causes"))
    counts.subtract(block(before, "causes"))
    gained = +counts
    if gained.total() > new_ones:
        crashed = min(gained[Cause.SIGNAL], new_ones)
        cause = str(block(block(new, "internal"), "incident").get("cause") or Cause.ERROR)
        gained = +Counts({Cause.SIGNAL.value: crashed}) + Counts({cause: new_ones - crashed})
    return dict(gained)
