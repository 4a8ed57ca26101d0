"""Which change of a status may wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dtjob.api.phase import Phase
from dtjob.plan.attempts import Attempts
from dtjob.plan.conditions import BLOCKED
from dtjob.plan.status import Restarts, Status, set_condition, set_phase
from dtjob.plan.urgency import only_counts
from tests.unit.operator.builders import NOW

WRITTEN = set_phase(Status(all_created=False, ready="0/4"), Phase.PENDING, "WaitingForPods", "", NOW)


@pytest.mark.parametrize(
    "more",
    [
        {"ready": "3/4"},
        {"all_created": True},
        {"replica_statuses": {"worker": {"replicas": 3, "active": 1}}, "ready": "1/4"},
    ],
)
def test_counts_may(more: dict[str, object]) -> None:
    assert only_counts(replace(WRITTEN, **more), WRITTEN)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "status",
    [
        WRITTEN,
        set_phase(WRITTEN, Phase.RUNNING, "AllTasksRunning", "", NOW),
        set_condition(WRITTEN, BLOCKED, True, "CannotCreate", "Pod/a: quota", NOW),
        replace(WRITTEN, message="worker-0 waits: ErrImagePull", ready="1/4"),
        replace(WRITTEN, attempts=Attempts.from_json({"worker": 1}), all_created=False),
        replace(WRITTEN, restarts=Restarts(total=1)),
        replace(WRITTEN, finished={"worker-0": 0}),
    ],
)
def test_all_else_is_written_at_once(status: Status) -> None:
    assert not only_counts(status, WRITTEN)


def test_the_first_status_is_written_at_once() -> None:
    assert not only_counts(Status(ready="0/4"), Status())


def test_of_a_job_that_has_ended_only_the_evaluator_would_be_made_again() -> None:
    ended = set_phase(WRITTEN, Phase.SUCCEEDED, "Completed", "", NOW)
    assert only_counts(replace(ended, finished={"worker-0": 0}), ended)
    assert not only_counts(replace(ended, finished={"evaluator-0": 0}), ended)
