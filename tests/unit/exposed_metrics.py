# SPDX-License-Identifier: Apache-2.0
"""All that the operator and a supervisor expose, for tests of pages, rules and dashboards that name metrics."""

from typing import Any

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.endpoints.metrics import Metrics
from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor.metrics import exposition, labels_of
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

_TIME = "1970-01-01T00:01:00Z"
_REPORT: dict[str, Any] = {
    "step": 1, "totalSteps": 2, "epoch": 1, "loss": 0.5, "stepsPerSecond": 1.0, "etaSeconds": 1.0,
    "examplesPerSecond": 1.0, "inputWait": 0.5,
    "checkpoint": {"step": 1, "time": _TIME}, "metrics": {"a": 1.0}, "evaluation": {"metrics": {"a": 1.0}},
    "state": "training",
}  # fmt: skip
_STATUS: dict[str, Any] = {
    "phase": "Running",
    "reason": "WorkersMissing",
    "conditions": [{"type": "StatusReachable", "status": "True", "reason": "Answers"}],
    "replicaStatuses": {"worker": {"replicas": 2, "active": 1, "pending": 1}},
    "progress": {"step": 1, "totalSteps": 2},
    "checkpoint": {"step": 1, "time": _TIME},
    "restarts": {"total": 1, "causes": {"Error": 1}},
    "goodput": {"percentage": 50, "seconds": {"kept": "1", "starting": "1"}},
    "internal": {
        "incident": {"startedAt": _TIME, "notBefore": _TIME, "cause": "Error", "inARow": 1, "checkpointStep": 1}
    },
}


def of_operator() -> str:
    """What an operator exposes that has a job, with a sample of each metric."""
    metrics, store, job = Metrics(), Store(), builders.job()
    metrics.watch(store, WorkQueue())
    stored = job_manifest(job)
    stored["metadata"]["resourceVersion"] = "1"
    store.apply({**stored, "status": _STATUS})
    store.apply(builders.pod(job, "worker-0", builders.unschedulable()))
    metrics.called("GET", "pods", "200")
    metrics.status_written({}, _STATUS)
    return generate_latest(metrics.registry).decode()


def of_trainer() -> str:
    """What a supervisor exposes that has reported everything."""
    return exposition(_REPORT, labels_of(Task("a", "b", "uid", "worker", 1)))[1].decode()


def labels_by_metric() -> dict[str, set[str]]:
    """The labels of each metric of ours, by its name as in a query: `_total`, `_bucket`, `_sum` and `_count` too."""
    found: dict[str, set[str]] = {}
    for text in (of_operator(), of_trainer()):
        for family in text_string_to_metric_families(text):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if name.startswith("dtjob_") and family.type != "histogram":
                found[name] = set()
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found
