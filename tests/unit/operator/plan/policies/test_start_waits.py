"""What the chief waits for before its first step is the job's message."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.objects.shared import shared_objects
from dtjob.plan.children import Children
from dtjob.plan.plan import plan
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

JOB = builders.job()
IN_USE = "checkpoint.storage /checkpoints is in use by job default/first (uid 1); waiting until it ends"


def message_of(report: dict[str, Any]) -> str:
    """The message of a job whose pods all run, and whose chief reports that."""
    objects = (*builders.all_pods(JOB).values(), *map(builders.stored, shared_objects(JOB)))
    made = plan(JOB, Children(objects, {"chief-0": report}), NOW)
    assert made.status is not None
    found = builders.with_status(JOB, made.status).status
    assert (found["phase"], found["reason"]) == ("Running", "AllTasksRunning")
    return str(found["message"])


def test_a_checkpoint_directory_in_use_is_said() -> None:
    assert message_of({"state": "starting", "message": IN_USE}) == f"chief-0 says: {IN_USE}"


@pytest.mark.parametrize("report", [{"state": "starting"}, {"state": "training", "step": 1, "message": "other"}])
def test_a_job_that_waits_for_nothing_has_no_message(report: dict[str, Any]) -> None:
    assert message_of(report) == ""


def test_an_earlier_pods_report_says_nothing() -> None:
    assert message_of({"state": "starting", "message": IN_USE, "attempt": 7}) == ""
