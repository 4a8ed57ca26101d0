# SPDX-License-Identifier: Apache-2.0
"""The operator's real metrics, which must say what the statuses say."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from dtjob.api.phase import ENDED
from dtjob.controller.cluster import JobKey
from dtjob.controller.observer import Observer
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.endpoints.metrics import Metrics
from dtjob.objects.manifest import Manifest

RESTARTS = {"dtjob_restarts_total": "training", "dtjob_evaluator_restarts_total": "evaluator"}
JOBS = "dtjob_jobs"
STEPS = {"dtjob_job_step": "progress", "dtjob_job_checkpoint_step": "checkpoint"}
"""Gauges of a step, with the block of the status that has the step."""
GAUGES = (JOBS, "dtjob_job_ready_tasks", "dtjob_job_tasks", "dtjob_job_restarts", *STEPS)
Sample = tuple[str, frozenset[tuple[str, str]]]
"""The name of a metric, and its labels."""


class Meters(Observer):
    """What an operator counts that dies and comes back. Each of its processes counts from 0."""

    def __init__(self) -> None:
        self._metrics = Metrics()
        self._before: Counter[str] = Counter()

    def process_begins(self, store: Store, queue: WorkQueue[JobKey]) -> None:
        """The operator starts, with this store and queue."""
        self._before = self.restarts()
        self._metrics = Metrics()
        self._metrics.watch(store, queue)

    def status_written(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        self._metrics.status_written(old, new)

    def restarts(self) -> Counter[str]:
        """The restarts that all processes have counted: of `training` and of the `evaluator`."""
        found = self._before.copy()
        for (name, _), value in self._samples().items():
            if name in RESTARTS:
                found[RESTARTS[name]] += int(value)
        return found

    def check_gauges(self, jobs: Iterable[Manifest]) -> None:
        """metric-is-status: The gauges say of all jobs what their statuses say."""
        wanted: Counter[Sample] = Counter()
        for job in jobs:
            status = job["status"]
            of = {"job_namespace": job["metadata"]["namespace"], "job_name": job["metadata"]["name"]}
            by_phase = {"phase": status["phase"], "strategy": job["spec"]["strategy"]}
            wanted[JOBS, frozenset(by_phase.items())] += 1
            if status["phase"] in ENDED:
                continue
            ready, tasks = map(int, status["ready"].split("/"))
            said: dict[str, int | None] = {"dtjob_job_ready_tasks": ready, "dtjob_job_tasks": tasks}
            for name, block in STEPS.items():
                said[name] = (status.get(block) or {}).get("step")
            wanted.update({(name, frozenset(of.items())): value for name, value in said.items() if value is not None})
            for cause, count in (status.get("restarts") or {}).get("causes", {}).items():
                wanted["dtjob_job_restarts", frozenset({**of, "cause": cause}.items())] = count
        found = {one: value for one, value in self._samples().items() if one[0] in GAUGES}
        assert found == dict(wanted), f"the metrics say {found}, and the statuses {wanted}"

    def _samples(self) -> dict[Sample, float]:
        families = self._metrics.registry.collect()
        return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}
