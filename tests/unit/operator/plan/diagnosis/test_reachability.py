# SPDX-License-Identifier: Apache-2.0
"""A status that cannot be read is said after a minute, and nothing follows from it."""

from dataclasses import replace
from typing import Any

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
OBJECTS = (*PODS.values(), *(builders.stored(one) for one in shared_objects(JOB)))
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
