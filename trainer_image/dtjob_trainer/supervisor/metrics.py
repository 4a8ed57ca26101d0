# SPDX-License-Identifier: Apache-2.0
"""A task's status as Prometheus metrics. prometheus_client is imported at the first scrape, so the start is faster."""

from collections.abc import Iterator, Mapping
from typing import Any

from dtjob_trainer.contract import times
from dtjob_trainer.contract.task import Task

STATES = ("waiting", "starting", "training", "serving", "evaluating", "saving", "finished", "failed")

_GAUGES = (
    ("step", "dtjob_trainer_step", "Training steps that are done."),
    ("totalSteps", "dtjob_trainer_total_steps", "Training steps of the whole training."),
    ("epoch", "dtjob_trainer_epoch", "Epoch that is being trained, from 1."),
    ("loss", "dtjob_trainer_loss", "Training loss at the last report."),
    ("stepsPerSecond", "dtjob_trainer_steps_per_second", "Training steps in a second."),
    ("etaSeconds", "dtjob_trainer_eta_seconds", "Seconds until the last step, at the current speed."),
)


def labels_of(task: Task) -> dict[str, str]:
    """The labels of every metric of `task`. Prometheus itself sets others: job, namespace, pod and the like."""
    return {"job_namespace": task.namespace, "job_name": task.name, "task": task.id}


def exposition(status: Mapping[str, Any], labels: Mapping[str, str]) -> tuple[str, bytes]:
    """The content type and text of /metrics for `status`, the body of /status. Every metric has `labels`."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StatusCollector(status, labels))
    return CONTENT_TYPE_LATEST, generate_latest(registry)


class _StatusCollector:
    """Shows one status to a prometheus_client registry."""

    def __init__(self, status: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        self._status, self._names, self._values = status, list(labels), list(labels.values())

    def collect(self) -> Iterator[Any]:
        """The metric families, as prometheus_client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self._status
        checkpoint, evaluation = status.get("checkpoint") or {}, status.get("evaluation") or {}
        numbers = [(name, text, status.get(key)) for key, name, text in _GAUGES]
        numbers.append(
            ("dtjob_trainer_checkpoint_step", "Training step of the last checkpoint.", checkpoint.get("step"))
        )
        numbers.append(
            (
                "dtjob_trainer_checkpoint_timestamp_seconds",
                "When the last checkpoint was saved, in seconds since the epoch.",
                times.seconds_of(checkpoint.get("time")),
            )
        )
        for name, text, value in numbers:
            if isinstance(value, (int, float)):
                family = GaugeMetricFamily(name, text, labels=self._names)
                family.add_metric(self._values, float(value))
                yield family
        for name, text, values in (
            ("dtjob_trainer_metric", "Training metrics at the last report, by name.", status.get("metrics") or {}),
            (
                "dtjob_trainer_evaluation_metric",
                "Metrics of the last evaluation, by name.",
                evaluation.get("metrics") or {},
            ),
        ):
            family = GaugeMetricFamily(name, text, labels=[*self._names, "name"])
            for key, value in values.items():
                if isinstance(value, (int, float)):
                    family.add_metric([*self._values, key], float(value))
            yield family
        state = GaugeMetricFamily(
            "dtjob_trainer_state",
            "1 for the state of the task, 0 for all other states.",
            labels=[*self._names, "state"],
        )
        for value in STATES:
            state.add_metric([*self._values, value], float(status.get("state") == value))
        yield state
        restarts = CounterMetricFamily(
            "dtjob_trainer_restarts_in_place", "Restarts of the training process in this container.", labels=self._names
        )
        restarts.add_metric(self._values, float(status.get("restartsInPlace", 0)))
        yield restarts
