# SPDX-License-Identifier: Apache-2.0
"""`status.progress`, `checkpoint`, `evaluation` and `restored`: how far training is, as the job's tasks report it."""

import math
from typing import Annotated, Any

from pydantic import Field

from dtjob.api.block import list_map
from dtjob.api.status.block import LONGEST_MESSAGE, Int32, Int64, Name, NumberText, StatusBlock, Time

MOST_METRICS = 64
"""Metrics in one list."""


class Metric(StatusBlock):
    """One metric."""

    name: Name
    """The name of the metric. The metrics of Keras' validation have val_ before their names."""
    value: NumberText
    """The value of the metric, a decimal number as text."""


Metrics = Annotated[tuple[Metric, ...], Field(max_length=MOST_METRICS, json_schema_extra=list_map("name"))]


class Progress(StatusBlock):
    """How far training is, as the chief reports it. The field is absent before the first report."""

    step: Int64
    """The number of training steps that are done."""
    total_steps: Int64 | None = None
    """The number of steps to train, to the end of the present stage. The field is absent if it is not known."""
    epoch: Int64 | None = None
    """The epoch that is being trained. The first epoch is 1."""
    stage: Int32 | None = None
    """Which call of fit or train of the program runs. The field is absent for the first one. Steps count over all."""
    percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """The percentage of totalSteps that is done."""
    estimated_remaining_seconds: Annotated[Int64, Field(ge=0)] | None = None
    """The estimated number of seconds until the last step, at the current speed."""
    steps_per_second: NumberText | None = None
    """The number of training steps in a second, a decimal number as text."""
    examples_per_second: NumberText | None = None
    """The number of training examples in a second, a decimal number as text. The field is absent if the size of a batch
    is not known."""
    input_wait_percentage: Annotated[Int32, Field(ge=0, le=100)] | None = None
    """The percentage of the last minute in which steps waited for their input. The field is absent if the time of
    waiting cannot be measured."""
    metrics: Metrics = ()
    """The loss and the metrics at the last report."""
    resume: Name | None = None
    """Whether a restart leads to the same bits as an uninterrupted run: exact or approximate."""
    model: Annotated[str, Field(max_length=LONGEST_MESSAGE)] | None = None
    """The path or URI of the trained model, after it was saved."""
    last_updated_time: Time | None = None
    """When these values were first seen."""


class SavedCheckpoint(StatusBlock):
    """The newest complete checkpoint. A restart resumes from it."""

    step: Int64
    """The training step of the checkpoint."""
    time: Time | None = None
    """When the checkpoint was written."""


class BestCheckpoint(StatusBlock):
    """The best checkpoint so far, according to spec.evaluation.best."""

    step: Int64
    """The training step of the checkpoint."""
    value: NumberText | None = None
    """The value of the metric that spec.evaluation.best names, a decimal number as text."""


class EvaluationResult(StatusBlock):
    """The latest result of the evaluator. The field is absent before the first evaluation."""

    step: Int64
    """The training step of the evaluated checkpoint."""
    metrics: Metrics = ()
    """The metrics of that checkpoint."""
    best: BestCheckpoint | None = None
    """The best checkpoint so far, according to spec.evaluation.best."""


class Restored(StatusBlock):
    """What training resumed from at its last start."""

    step: Int64
    """The step of the restored checkpoint. The value 0 means that training started from the beginning."""
    time: Time
    """When the operator saw it."""


def number_text(value: Any) -> str:
    """A number as text: whole ones in full, others with six significant digits."""
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.6g}"


def speed_text(value: float) -> str:
    """Steps per second as text: one decimal from 10 on; three significant digits below 10, and from 1e15 on."""
    return f"{value:.1f}" if 10 <= value < 1e15 else f"{value:.3g}"


def metric_list(values: dict[str, Any]) -> tuple[Metric, ...]:
    """Metrics by name, as the list that the status holds."""
    named = list(values.items())[:MOST_METRICS]
    return tuple(Metric(name=name, value=number_text(value)) for name, value in named)
