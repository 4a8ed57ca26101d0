# SPDX-License-Identifier: Apache-2.0
"""A task's status as Prometheus metrics. prometheus_client is imported at the first scrape, so the start is faster."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from dtjob_trainer.contract import times
from dtjob_trainer.contract.task import Task

STATES = ("waiting", "starting", "training", "serving", "evaluating", "saving", "finished", "failed")


def labels_of(task: Task) -> dict[str, str]:
    """The labels of every metric of `task`. Prometheus itself sets others: job, namespace, pod and the like."""
    return {"job_namespace": task.namespace, "job_name": task.name, "task": task.id}


def exposition(status: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[str, bytes]:
    """The content type and text of /metrics for `status`, the body of /status. Every metric has `labels`."""
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

    return CONTENT_TYPE_LATEST, generate_latest(SimpleNamespace(collect=lambda: _families(status, labels)))


def _families(status: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Any]:
    """The metric families of which something is known."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    checkpoint, evaluation = status.get("checkpoint") or {}, status.get("evaluation") or {}
    gauges: tuple[tuple[str, str, object], ...] = (
        ("step", "Training steps that are done.", status.get("step")),
        ("total_steps", "Training steps of the whole training.", status.get("totalSteps")),
        ("epoch", "Epoch that is being trained, from 1.", status.get("epoch")),
        ("loss", "Training loss at the last report.", status.get("loss")),
        ("steps_per_second", "Training steps in a second.", status.get("stepsPerSecond")),
        ("examples_per_second", "Training examples in a second.", status.get("examplesPerSecond")),
        (
            "input_wait_ratio",
            "Share of the last minute in which steps waited for their input, 0 to 1.",
            status.get("inputWait"),
        ),
        ("eta_seconds", "Seconds until the last step, at the current speed.", status.get("etaSeconds")),
        ("checkpoint_step", "Training step of the last checkpoint.", checkpoint.get("step")),
        (
            "checkpoint_timestamp_seconds",
            "When the last checkpoint was saved, in seconds since the epoch.",
            times.seconds_of(checkpoint.get("time")),
        ),
    )
    tables: tuple[tuple[str, str, str, Mapping[str, object]], ...] = (
        ("metric", "Training metrics at the last report, by name.", "name", status.get("metrics") or {}),
        ("evaluation_metric", "Metrics of the last evaluation, by name.", "name", evaluation.get("metrics") or {}),
        (
            "state",
            "1 for the state of the task, 0 for all other states.",
            "state",
            {state: status.get("state") == state for state in STATES},
        ),
    )
    for name, text, value in gauges:
        if isinstance(value, int | float):
            family = GaugeMetricFamily(f"dtjob_trainer_{name}", text, labels=list(labels))
            family.add_metric(list(labels.values()), float(value))
            yield family
    for name, text, label, values in tables:
        family = GaugeMetricFamily(f"dtjob_trainer_{name}", text, labels=[*labels, label])
        for key, value in values.items():
            if isinstance(value, int | float):
                family.add_metric([*labels.values(), key], float(value))
        yield family
    name, text = "dtjob_trainer_restarts_in_place", "Restarts of the training process in this container."
    restarts = CounterMetricFamily(name, text, labels=list(labels))
    restarts.add_metric(list(labels.values()), float(status.get("restartsInPlace", 0)))
    yield restarts
