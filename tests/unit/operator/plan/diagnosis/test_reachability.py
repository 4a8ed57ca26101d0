# SPDX-License-Identifier: Apache-2.0
"""Statuses that cannot be read, and tasks that cannot reach each other: both are said after a while."""

from dataclasses import replace
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Plan
from dtjob.plan.diagnosis.reachability import STATUS_REACHABLE
from dtjob.plan.seen.children import Children, Silence
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job()
PODS = builders.all_pods(JOB)
CHIEF_UID = PODS["chief-0"]["metadata"]["uid"]
SILENCE = Silence(CHIEF_UID, "10.0.0.7:2223", NOW, "NoAnswer", "connected, but no answer within 3 s")
SHARED = [*map(builders.stored, shared_objects(JOB))]
OBJECTS = (*PODS.values(), *SHARED)
SEEN = Children(OBJECTS, silences={"chief-0": SILENCE})


def condition(made: Plan, job: Job) -> dict[str, Any] | None:
    status = made.status or job.status
    return next((one for one in status["conditions"] if one["type"] == STATUS_REACHABLE), None)


def test_a_short_silence_sets_no_condition_and_is_looked_at_again() -> None:
    job, made = builders.looked(JOB, SEEN, at(1))
    assert condition(made, job) is None
    assert made.look_again_at == at(60)


def test_a_long_silence_is_a_condition_and_one_event_that_say_where_to_look() -> None:
    job, made = builders.looked(JOB, SEEN, at(60))
    found = condition(made, job)
    assert (found["status"], found["reason"]) == ("False", "NoAnswer")
    assert found["lastTransitionTime"] == "2026-11-21T10:01:00Z"
    for word in ("chief-0", "10.0.0.7:2223", "connected, but no answer", "NetworkPolicy", "service mesh", "port 2223"):
        assert word in found["message"]
    (event,) = made.events
    assert (event.type, event.reason) == ("Warning", "StatusUnreachable")
    assert (job.status["phase"], made.actions) == ("Running", ()), "unknown is no stall and no failure"
    job, again = builders.looked(job, SEEN, at(200))
    assert (again.status, again.events) == (None, ())
    other = replace(SEEN, silences={"chief-0": replace(SILENCE, reason="ConnectTimeout")})
    job, changed = builders.looked(job, other, at(300))
    found = condition(changed, job)
    assert (found["reason"], found["lastTransitionTime"]) == ("ConnectTimeout", "2026-11-21T10:01:00Z")
    assert changed.events == ()


def test_the_condition_is_true_again_after_the_first_answer() -> None:
    job, _ = builders.looked(JOB, SEEN, at(60))
    job, made = builders.looked(job, Children(OBJECTS), at(70))
    assert made.status is None, "an operator that has just started knows neither"
    job, made = builders.looked(job, Children(OBJECTS, {"chief-0": {"step": 3}}), at(80))
    found = condition(made, job)
    assert (found["status"], found["lastTransitionTime"]) == ("True", "2026-11-21T10:01:20Z")


def test_the_condition_of_a_suspended_job_is_unknown() -> None:
    job, _ = builders.looked(JOB, SEEN, at(60))
    suspended, made = builders.looked(builders.suspending(job), SEEN, at(70))
    found = condition(made, suspended)
    assert (found["status"], found["reason"], found["message"]) == ("Unknown", "JobSuspended", "")
    assert found["lastTransitionTime"] == "2026-11-21T10:01:10Z"
    _, made = builders.looked(suspended, SEEN, at(80))
    assert made.status is None
    resumed, _ = builders.looked(builders.suspending(suspended, False), Children(OBJECTS), at(90))
    pods = tuple(builders.all_pods(resumed).values())
    resumed, made = builders.looked(resumed, Children(pods, {"chief-0": {"step": 3, "attempt": 1}}), at(100))
    assert condition(made, resumed)["status"] == "True"


def test_the_condition_of_an_ended_job_is_unknown() -> None:
    job, _ = builders.looked(JOB, SEEN, at(60))
    ended = {**PODS, "chief-0": {**PODS["chief-0"], "status": builders.ended(0)}}
    job, made = builders.looked(job, Children(tuple(ended.values()), silences={"chief-0": SILENCE}), at(70))
    assert job.status["phase"] == "Succeeded"
    found = condition(made, job)
    assert (found["status"], found["reason"]) == ("Unknown", "JobEnded")


def test_the_silence_of_an_earlier_pod_or_of_one_that_does_not_run_is_none() -> None:
    for children in (
        replace(SEEN, silences={"chief-0": replace(SILENCE, pod_uid="earlier")}),
        replace(SEEN, silences={"evaluator-0": SILENCE}),
    ):
        job, made = builders.looked(JOB, children, at(600))
        assert condition(made, job) is None
    waiting = {**PODS, "chief-0": {**PODS["chief-0"], "status": builders.waiting("ErrImagePull")}}
    job, made = builders.looked(JOB, Children(tuple(waiting.values()), silences={"chief-0": SILENCE}), at(600))
    assert condition(made, job) is None


NO_NAME = "gaierror: [Errno -2] Name or service not known"
WAITS = {"chief-0": {"state": "waiting", "unreached": {"worker-0": "", "worker-1": ""}}}


def seen(reports: dict[str, dict[str, Any]], silent: tuple[str, ...] = (), **states: dict[str, Any]) -> Children:
    """The job's pods, which run, but for those with another state."""
    pods = builders.all_pods(JOB)
    for task, state in states.items():
        pods[task.replace("_", "-")]["status"] = state
    silences = {task: Silence("uid", "10.0.0.7:2223", NOW, "NoAnswer", "") for task in silent}
    return Children((*pods.values(), *SHARED), reports, silences=silences)


def test_a_job_whose_tasks_cannot_reach_each_other_says_so_once() -> None:
    children = seen({**WAITS, "worker-0": {"unreached": {"chief-0": NO_NAME}}})
    job, made = builders.looked(JOB, children, at(29))
    assert (job.status["reason"], job.status["message"], made.look_again_at) == ("AllTasksRunning", "", at(30))
    job, made = builders.looked(job, children, at(30))
    assert (job.status["phase"], job.status["reason"]) == ("Running", "TasksUnreachable")
    words = ("chief-0", "worker-0, worker-1", NO_NAME, "NetworkPolicy", "egress", "2222", "2224", "DNS")
    assert all(word in job.status["message"] for word in words)
    (event,) = made.events
    assert (event.type, event.reason, event.message) == ("Warning", "TasksUnreachable", job.status["message"])
    job, made = builders.looked(job, children, at(40))
    assert (made.status, made.events) == (None, ())


def test_the_message_has_the_reason_that_the_chief_reports() -> None:
    children = seen({"chief-0": {"unreached": {"worker-1": "its name does not resolve"}}})
    job, _ = builders.looked(JOB, children, at(30))
    assert "by worker-1, though" in job.status["message"]
    assert "chief-0 says: its name does not resolve" in job.status["message"]


def test_the_message_ends_when_the_chief_trains() -> None:
    job, _ = builders.looked(JOB, seen(WAITS), at(30))
    job, made = builders.looked(job, seen({"chief-0": {"state": "training", "step": 1}}), at(60))
    assert (job.status["reason"], job.status["message"], made.events) == ("AllTasksRunning", "", ())


@pytest.mark.parametrize(
    "children",
    [
        seen({"chief-0": {"state": "waiting"}}),
        seen({"chief-0": {"unreached": ["worker-0"]}}),
        seen({"chief-0": {"unreached": {"worker-7": ""}}}),
        seen({"chief-0": {**WAITS["chief-0"], "attempt": 1}}),
        seen(WAITS, silent=("chief-0",)),
        seen({"worker-0": {"unreached": {"chief-0": NO_NAME}}}),
    ],
    ids=["hears all", "no report of ours", "no such task", "another attempt", "silent", "nobody knows of the chief"],
)
def test_only_a_current_report_of_the_chief_names_unreached_tasks(children: Children) -> None:
    job, _ = builders.looked(JOB, children, at(600))
    assert job.status["reason"] == "AllTasksRunning"


def test_a_pod_that_does_not_run_is_what_the_job_waits_for() -> None:
    job, _ = builders.looked(JOB, seen(WAITS, worker_0=builders.unschedulable("no GPU")), at(600))
    assert (job.status["phase"], job.status["message"]) == ("Pending", "worker-0 waits: Unschedulable: no GPU")
