# SPDX-License-Identifier: Apache-2.0
"""The record of a failure: whose doing it counts as, and how the status keeps it."""

from __future__ import annotations

from dtjob.plan.record.failure import Cause, Failure
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

FAILURE = Failure(
    task=builders.task("worker-1"),
    cause=Cause.ERROR,
    time=NOW,
    pod="digits-worker-1-0",
    node="node-1",
    reason="failed (exit code 1)",
    message="ValueError: bad shape",
    exit_code=1,
)


def test_only_the_jobs_own_doing_is_charged() -> None:
    assert [cause for cause in Cause if cause.charged] == [
        Cause.OOM_KILLED,
        Cause.STORAGE_LIMIT_EXCEEDED,
        Cause.SIGNAL,
        Cause.STALLED,
        Cause.ERROR,
    ]


def test_an_unknown_cause_is_read_as_none() -> None:
    assert [Cause.known(cause.value) for cause in Cause] == list(Cause)
    assert Cause.known("NodeMelted") is None


def test_the_first_failure_in_the_status_has_its_fields() -> None:
    assert FAILURE.in_status().to_json() == {
        "task": "worker-1",
        "pod": "digits-worker-1-0",
        "node": "node-1",
        "cause": "Error",
        "reason": "failed (exit code 1)",
        "message": "ValueError: bad shape",
        "time": "2026-11-21T10:00:00Z",
        "exitCode": 1,
    }


def test_a_failures_unknown_fields_are_left_out_of_the_status() -> None:
    gone = Failure(builders.task("chief-0"), Cause.DELETED, NOW, "digits-chief-0-0", "", "was deleted", "")
    assert gone.in_status().to_json().keys() == {"task", "pod", "cause", "reason", "time"}
    assert gone.sentence() == "chief-0 was deleted"
