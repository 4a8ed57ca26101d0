# SPDX-License-Identifier: Apache-2.0
"""Training processes that were started again in their pods: each is counted and told once."""

from typing import Any

import pytest

from dtjob.api.job import Job
from tests.unit.operator import builders


def look(job: Job, report: dict[str, Any], after: float = 0) -> tuple[Job, list[str]]:
    """The job with the status that it has when its chief says this, and the types of Events about crashes."""
    job, made = builders.chief_says(job, report, after)
    return job, [one.type for one in made.events if one.reason == "Crashed"]


def says(count: int, attempt: int = 0, **more: Any) -> dict[str, Any]:
    crashes = {"count": count, "task": "worker-1", "signal": "SIGSEGV", "step": 118, **more}
    return {"attempt": attempt, "incarnation": count, "step": 100, "restoredStep": 100, "crashes": crashes}


def test_each_crash_is_counted_and_has_an_event_once():
    job, told = look(builders.job(), says(1))
    assert told == ["Warning"]
    assert job.status["restarts"] == {"total": 1, "causes": {"Signal": 1}}
    assert job.status["internal"]["crashes"] == {"attempt": 0, "count": 1}
    job, told = look(job, says(1), 60)
    assert (told, job.status["restarts"]["total"]) == ([], 1)
    job, told = look(job, says(4), 120)
    assert told == ["Warning"]
    assert job.status["restarts"] == {"total": 4, "causes": {"Signal": 4}}
    assert job.status["internal"]["crashes"] == {"attempt": 0, "count": 4}


def test_a_process_that_used_up_its_memory_is_counted_as_such():
    """The kernel may kill one process of a container. Kubernetes says so only when the container ends."""
    job, told = look(builders.job(), says(1, signal="SIGKILL, out of memory"))
    assert (told, job.status["restarts"]["causes"]) == (["Warning"], {"OOMKilled": 1})


def test_a_new_chief_counts_from_its_own_beginning():
    job, _ = look(builders.job(), says(2))
    job = builders.with_status(job, builders.at_attempts({"chief-0": 1}, **job.status))
    job, told = look(job, says(1, attempt=1), 60)
    assert len(told) == 1
    assert job.status["restarts"] == {"total": 3, "causes": {"Signal": 3}}
    assert job.status["internal"]["crashes"] == {"attempt": 1, "count": 1}


def test_a_chief_that_says_too_much_is_not_believed_in_all():
    """The operator's metrics are fed by what is counted, and belong to all of its users."""
    job, told = look(builders.job(), says(2**53 - 1))
    assert (len(told), job.status["restarts"]["causes"]) == (1, {"Signal": 100})
    job, told = look(job, says(2**53 - 1), 60)
    assert (told, job.status["restarts"]["total"]) == ([], 100)


def test_crashes_use_up_no_budget_and_replace_no_pod():
    job = builders.job(failurePolicy={"maxRestartsWithoutProgress": 1})
    for count in range(1, 5):
        job, _ = look(job, says(count), 60.0 * count)
    assert "incident" not in job.status["internal"]
    assert "attempts" not in job.status["internal"]
    assert job.status["phase"] == "Running"


@pytest.mark.parametrize("crashes", [{"count": -1}, {"count": "many"}, {}, 3, None])
def test_a_crash_count_that_is_no_count_is_ignored(crashes: Any):
    job, told = look(builders.job(), {**says(1), "crashes": crashes})
    assert told == []
    assert job.status["restarts"] == {"total": 0}
