# SPDX-License-Identifier: Apache-2.0
"""Deadlines: when a job fails over its own time, and what it says then."""

from typing import Any

import pytest

from dtjob.objects.defaults import MISSING_IMAGE_MESSAGE
from dtjob.plan.actions import Delete, Event
from dtjob.plan.lifetime.ending import DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED, overdue
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at, plan_answered

SINCE = {"since": "2026-11-21T10:00:00Z", "seconds": 0}
RAN = {**SINCE, "allRanTime": "2026-11-21T10:00:10Z"}


def reason(policy: dict[str, Any], active: dict[str, Any], seconds: float, runs: bool = True) -> str | None:
    """What is over of a job with these deadlines, whose tasks run or wait."""
    job = builders.job(**policy, status={"active": active})
    state = builders.running() if runs else builders.waiting("ImagePullBackOff", "no such image")
    late = overdue(builders.situation(job, *builders.all_pods(job, state).values(), now=at(seconds)))
    return late.reason if late else None


ACTIVE, START = {"activeDeadlineSeconds": 100}, {"startDeadlineSeconds": 30}


@pytest.mark.parametrize(
    ("active", "seconds", "over"),
    [
        (RAN, 99, False),
        (RAN, 100, True),
        ({**RAN, "seconds": 60}, 39, False),  # it was active before a suspension
        ({**RAN, "seconds": 60}, 40, True),
        ({**RAN, "seconds": 500}, 0, True),  # the deadline was lowered since
        ({"seconds": 500}, 0, False),  # it is suspended
        (RAN, -5000, False),  # an operator whose clock is behind
    ],
)
def test_a_job_may_be_active_for_so_long(active: dict[str, Any], seconds: float, over: bool):
    assert reason(ACTIVE, active, seconds) == (DEADLINE_EXCEEDED if over else None)
    assert reason({}, active, seconds) is None


@pytest.mark.parametrize(
    ("active", "seconds", "runs", "over"),
    [
        (SINCE, 29, False, False),
        (SINCE, 30, False, True),
        (SINCE, 30, True, False),  # all came to run, which the status does not say yet
        (RAN, 5000, False, False),  # a restart is no start
        ({**SINCE, "seconds": 5000}, 29, False, False),  # anew after each suspension
        ({**SINCE, "seconds": 5000}, 30, False, True),
        ({"seconds": 500}, 5000, False, False),
    ],
)
def test_all_tasks_have_so_long_to_start(active: dict[str, Any], seconds: float, runs: bool, over: bool):
    assert reason(START, active, seconds, runs=runs) == (START_DEADLINE_EXCEEDED if over else None)


def test_the_message_has_nothing_of_a_phase_before():
    job = builders.job("Default", **ACTIVE, status={"active": RAN, "phase": "Suspended", "message": "by its user"})
    late = overdue(builders.situation(job, now=at(100)))
    assert late.why.endswith("(100); at the end 1 of 1 task did not run")


def test_the_message_keeps_a_quota_over_a_restart_of_the_operator():
    job = builders.job("Default", **START)
    refused = {"Pod/digits-chief-0-0": "forbidden: exceeded quota: small"}
    first = plan(job, Children(problems=refused), NOW)
    assert first.status is not None
    job = builders.with_status(job, first.status)
    for problems in (refused, {}):
        made = plan(job, Children(problems=problems), at(30))
        assert "Pod/digits-chief-0-0: forbidden: exceeded quota: small" in made.status["message"]
        assert made.status["reason"] == START_DEADLINE_EXCEEDED


def test_a_job_that_waits_for_an_image_is_cut_off_too():
    job = builders.job("Default", image=None, **START)
    first = plan(job, Children(), NOW)
    assert (first.look_again_at, (first.status or {})["reason"]) == (at(30), "ImageMissing")
    late = plan(builders.with_status(job, first.status or {}), Children(), at(30)).status
    assert (late["phase"], late["reason"]) == ("Failed", START_DEADLINE_EXCEEDED)
    assert MISSING_IMAGE_MESSAGE in late["message"]


@pytest.mark.parametrize(
    ("policy", "seconds", "looks"),
    [
        ({}, 40, None),
        (ACTIVE, 0, at(100)),
        ({**ACTIVE, **START}, 0, at(30)),
        ({**ACTIVE, **START}, 40, at(100)),  # all tasks run just now
        ({"activeDeadlineSeconds": 86_400}, 0, at(300)),  # a clock may be set meanwhile
    ],
)
def test_the_next_look_is_at_the_next_deadline_or_after_five_minutes(policy, seconds, looks):
    job = builders.job(**policy, status={"active": SINCE})
    pods = builders.all_pods(job, builders.running() if seconds else builders.waiting("ContainerCreating"))
    deleted = Children(tuple(builders.deleting(pod, at(1000)) for pod in pods.values()))  # so no pod is slow to start
    made = plan(job, Children(tuple(pods.values())) if seconds else deleted, at(seconds))
    assert made.look_again_at == looks


@pytest.mark.parametrize("clean", ["Running", "All", "None"])
def test_running_pods_are_deleted_at_the_deadline_whatever_the_clean_pod_policy(clean: str):
    job = builders.job(**ACTIVE, cleanPodPolicy=clean, status={"active": RAN})
    pods = builders.all_pods(job, worker_1=builders.ended(0))
    made = plan(job, Children(tuple(pods.values())), at(100))
    gone = {one.name for one in made.actions if isinstance(one, Delete)}
    assert {"digits-chief-0-0", "digits-worker-0-0"} <= gone
    assert ("digits-worker-1-0" in gone) is (clean == "All")
    assert made.events == (Event("Warning", DEADLINE_EXCEEDED, made.status["message"]),)


def test_a_run_that_has_just_succeeded_has_succeeded():
    job = builders.job(**ACTIVE, status={"active": RAN})
    pods = builders.all_pods(job, chief_0=builders.ended(0))
    assert (plan(job, Children(tuple(pods.values())), at(500)).status or {})["phase"] == "Succeeded"


def test_restarts_do_not_reset_the_deadline():
    job = builders.job("Default", **ACTIVE)
    status: dict[str, Any] = {}
    for second in range(0, 100, 20):
        failed = builders.pod(job, "chief-0", builders.ended(1), attempt=second // 20)
        made = plan_answered(builders.with_status(job, status), Children((failed,)), at(second))
        status = made.status or status
        assert status["active"]["since"] == "2026-11-21T10:00:00Z"
    assert (plan(builders.with_status(job, status), Children(), at(100)).status or {})["reason"] == DEADLINE_EXCEEDED


def test_a_job_that_does_not_say_how_long_it_was_active_counts_from_its_start():
    status = {"startTime": "2026-11-21T09:59:00Z", "phase": "Running", "conditions": [builders.condition("Running")]}
    job = builders.job("Default", **ACTIVE, **START, status=status)
    pods = Children(tuple(builders.all_pods(job, builders.waiting("ErrImagePull")).values()))
    made = builders.plan_answered(job, pods, at(39)).status  # that it ran is known: it has started
    assert made["phase"] == "Restarting"
    assert (plan(job, pods, at(40)).status or {})["reason"] == DEADLINE_EXCEEDED
