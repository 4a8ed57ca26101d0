# SPDX-License-Identifier: Apache-2.0
"""Suspension: what goes, what stays, and what a job goes on with."""

from typing import Any

import pytest

from dtjob.api.status.internal import Incident
from dtjob.plan.actions import Create, Delete, Plan
from dtjob.plan.lifetime.suspension import go_on, is_suspended
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at, plan_answered
from tests.unit.operator.story import Story

CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}}
SUSPENDED = builders.condition("Suspended")


def story_of(**spec: Any) -> Story:
    return Story(builders.job(**spec))


def test_a_job_that_is_created_suspended_makes_nothing_and_resumes_with_its_first_attempt() -> None:
    story = story_of(suspend=True)
    assert story.look(NOW).actions == ()
    assert (story.stands, story.own("Suspended")) == (("Suspended", "JobSuspended"), ("True", "JobSuspended"))
    assert "startTime" not in story.job.status
    assert story.look(at(86_400)) == Plan()
    story.change(suspend=False)
    story.run(at(90_000))
    assert builders.names(story.pods) == ["digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0"]
    assert story.job.status["startTime"] == "2026-11-22T11:00:00Z"
    assert story.own("Suspended") == ("False", "JobResumed")
    told = [(one.type, one.reason) for one in story.events]
    assert told[:2] == [("Normal", "Suspended"), ("Normal", "Resumed")]


def test_a_job_that_was_suspended_before_its_first_status_goes_on_with_new_pods() -> None:
    story = story_of()
    story.carry_out(story.plan(NOW), NOW)  # the first status may be written after the first pods are made
    story.change(suspend=True)
    story.settle(at(1))
    story.change(suspend=False)
    story.settle(at(2))
    assert story.tasks == ["chief-0-1", "worker-0-1", "worker-1-1"]
    assert story.job.status["restarts"]["total"] == 0


@pytest.mark.parametrize("strategy", ["Default", "MultiWorkerMirrored", "ParameterServer"])
@pytest.mark.parametrize("program", [True, False])
def test_all_pods_go_at_once_and_keep_their_service_while_they_save(strategy: str, program: bool) -> None:
    story = story_of(strategy=strategy, program=program, ps=strategy == "ParameterServer", evaluator=True)
    story.run(NOW)
    story.change(suspend=True)
    made = plan_answered(story.job, story.children, at(60))
    assert all(isinstance(one, Delete) for one in made.actions)
    assert sorted(one.name for one in made.actions if isinstance(one, Delete)) == builders.names(story.pods)
    assert made.status["reason"] == "JobSuspended"
    leaving = Children(tuple(builders.deleting(one) if one in story.pods else one for one in story.children.objects))
    assert plan_answered(builders.with_status(story.job, made.status), leaving, at(61)).actions == ()
    story.look(at(62))
    story.look(at(62))
    assert story.pods == []
    assert story.job.status["reason"] == "JobSuspended"


def test_a_resumed_job_has_new_attempts_and_counts_no_restart() -> None:
    incident = Incident(started_at=at(-900), cause="Error", not_before=at(-900), charged=3, in_a_row=2)
    counts = {"total": 3, "causes": {"Error": 3}}
    story = story_of(evaluator=True, status={**builders.remembered(incident=incident), "restarts": counts})
    story.run(NOW)
    story.change(suspend=True)
    story.settle(at(60))
    story.change(suspend=False)
    story.run(at(600))
    assert builders.names(story.pods) == [
        f"digits-{id_}-1" for id_ in ("chief-0", "evaluator-0", "worker-0", "worker-1")
    ]
    assert (story.job.status["internal"]["incident"], story.job.status["restarts"]) == (incident.to_json(), counts)
    assert story.job.status["active"]["seconds"] == 60
    assert story.job.status["startTime"] == "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    "state",
    [
        builders.ended(1),
        builders.ended(143),
        builders.out_of_memory(),
        builders.disrupted(),
        builders.evicted(),
        builders.rejected(),
        builders.waiting("ImagePullBackOff"),
        {},
    ],
)
def test_no_end_of_a_suspended_jobs_pods_is_a_failure(state: dict[str, Any]) -> None:
    job = builders.job(suspend=True, failurePolicy={"maxRestartsWithoutProgress": 0})
    pods = builders.all_pods(job, state)
    made = plan_answered(job, Children(tuple(pods.values())), at(1))
    assert (made.status["phase"], made.status["restarts"]) == ("Suspended", {"total": 0})
    assert "lastFailure" not in made.status
    assert len(made.actions) == 3


def test_a_suspension_that_was_not_observed_leaves_running_pods_alone() -> None:
    """The operator was away when the job was suspended, and when it went on."""
    story = story_of()
    story.run(NOW)
    before = [one["metadata"]["uid"] for one in story.pods]
    story.change(suspend=True)
    story.change(suspend=False)
    assert story.look(at(60)) == Plan()
    assert [one["metadata"]["uid"] for one in story.pods] == before


def test_a_run_that_has_ended_well_meanwhile_has_succeeded() -> None:
    """Its chief had finished when it was told to end."""
    job = builders.job(suspend=True, status={"phase": "Suspended", "active": {"seconds": 5}})
    pods = Children(tuple(builders.all_pods(job, chief_0=builders.ended(0)).values()))
    made = plan_answered(job, pods, at(1))
    assert made.status["phase"] == "Succeeded"
    assert not [one for one in made.actions if isinstance(one, Create)]
    assert plan_answered(builders.suspending(job, False), pods, at(1)).status["phase"] == "Succeeded"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_job_is_not_suspended(phase: str) -> None:
    assert not is_suspended(builders.situation(builders.job(suspend=True, status={"phase": phase})))


ALL_WORKERS = {"chief": False, "workers": 3, "ps": 2, "successPolicy": "AllWorkers"}


@pytest.mark.parametrize(
    ("strategy", "spec", "finished", "again"),
    [
        ("MultiWorkerMirrored", {}, "0", ["chief-0", "worker-0", "worker-1"]),
        ("ParameterServer", {}, "0", ["chief-0", "worker-1"]),
        # Worker 0 makes the variables on them, and the other workers wait for that; another worker's work stays done.
        ("ParameterServer", ALL_WORKERS, "0,2", ["ps-0", "ps-1", "worker-0", "worker-1"]),
    ],
)
def test_a_finished_task_is_started_again_if_its_peers_wait_for_it(strategy, spec, finished, again) -> None:
    """These workers have finished before the suspension."""
    status = builders.remembered(finished=[{"role": "worker", "attempt": 0, "indexes": finished}])
    status |= {"conditions": [SUSPENDED], "active": {"seconds": 5}}
    draft = builders.draft(builders.job(strategy, program=False, status=status, **spec))
    go_on(draft)
    assert sorted(draft.status.internal.attempts.exceptions) == again


@pytest.mark.parametrize("checkpoint", [CLAIM, None])
@pytest.mark.parametrize("state", [builders.ended(143), None])
def test_an_evaluator_that_a_suspension_ended_is_created_again_and_not_counted(checkpoint, state):
    """Training has ended well while the job was suspended, and then the job goes on."""
    status = {"phase": "Suspended", "active": {"seconds": 5}, "conditions": [SUSPENDED]}
    job = builders.job(
        evaluator=True, suspend=True, status=status, **({"checkpoint": checkpoint} if checkpoint else {})
    )
    pods = [builders.pod(job, "chief-0", builders.ended(0))]
    if state:
        pods.append(builders.pod(job, "evaluator-0", state))
    made = plan_answered(job, Children(tuple(pods)), at(1))
    assert (made.status["phase"], made.status["restarts"]) == ("Succeeded", {"total": 0})
    assert made.status["internal"]["attempts"]["exceptions"] == {"evaluator-0": 1}
    assert not [one for one in made.actions if isinstance(one, Create)]
    again = builders.suspending(builders.with_status(job, made.status), False)
    actions = plan_answered(again, Children(tuple(pods)), at(60)).actions
    assert "digits-evaluator-0-1" in [one.name for one in actions if isinstance(one, Create)]
