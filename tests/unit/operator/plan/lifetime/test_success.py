# SPDX-License-Identifier: Apache-2.0
"""Success is the chief task's exit 0, or that of all workers, and nothing else."""

import json
from typing import Any

import pytest

from dtjob.plan.lifetime.ending import succeeded
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import at


@pytest.mark.parametrize(
    ("chief", "finished", "success"),
    [(True, "chief-0", True), (True, "worker-0", False), (False, "worker-0", True), (False, "worker-1", False)],
)
def test_the_success_of_a_job_is_that_of_its_chief_task(chief: bool, finished: str, success: bool):
    job = builders.job(chief=chief)
    pods = builders.all_pods(job)
    pods[finished]["status"] = builders.ended(0)
    assert succeeded(builders.situation(job, *pods.values())) is success


@pytest.mark.parametrize(
    ("strategy", "chief", "finished", "success"),
    [
        ("MultiWorkerMirrored", True, ("chief-0",), False),
        ("MultiWorkerMirrored", True, ("worker-0", "worker-1"), False),
        ("MultiWorkerMirrored", True, ("chief-0", "worker-0", "worker-1"), True),
        ("MultiWorkerMirrored", False, ("worker-0",), False),
        ("MultiWorkerMirrored", False, ("worker-0", "worker-1"), True),
        ("ParameterServer", False, ("worker-0", "ps-0"), False),
        ("ParameterServer", False, ("worker-0", "worker-1"), True),  # parameter servers never end
    ],
)
def test_all_workers_must_have_ended_where_the_job_says_so(strategy, chief, finished, success):
    ps = strategy == "ParameterServer"
    job = builders.job(strategy, chief=chief, ps=int(ps), program=not ps, evaluator=True, successPolicy="AllWorkers")
    pods = builders.all_pods(job)
    for one in finished:
        pods[one]["status"] = builders.ended(0)
    assert succeeded(builders.situation(job, *pods.values())) is success


def test_only_the_current_attempts_end_counts():
    job = builders.job(status=builders.at_attempts({"chief-0": 1}))
    old = builders.pod(job, "chief-0", builders.ended(0), attempt=0)
    assert not succeeded(builders.situation(job, old))


def test_a_succeeded_pod_without_a_status_of_its_training_container_is_no_success():
    job = builders.job("Mirrored")
    assert not succeeded(builders.situation(job, builders.pod(job, "chief-0", {"phase": "Succeeded"})))


@pytest.mark.parametrize("weights", ["NaN", "Infinity"])
def test_weights_that_are_not_finite_are_reported_when_a_job_succeeds(weights: str):
    job = builders.job("Default")
    chief = builders.pod(
        job, "chief-0", builders.ended(0, message=f'{{"attempt": 0, "step": 9, "weights": "{weights}"}}')
    )
    made = plan(job, Children((chief,)), at(9))
    assert made.status["phase"] == "Succeeded"
    assert weights in made.status["message"]
    assert [(one.type, one.reason) for one in made.events if one.type == "Warning"] == [("Warning", "WeightsNotFinite")]


@pytest.mark.parametrize("report", ['{"attempt": 0, "step": 9}', '{"attempt": 0, "step": 9, "weights": ["NaN"]}', ""])
def test_nothing_is_said_of_weights_that_are_numbers(report: str):
    job = builders.job("Default")
    made = plan(job, Children((builders.pod(job, "chief-0", builders.ended(0, message=report)),)), at(9))
    assert (made.status["reason"], "weights" in made.status["message"]) == ("Completed", False)
    assert not [one for one in made.events if one.reason == "WeightsNotFinite"]


FOUND = {"restoredStep": 690, "step": 690, "totalSteps": 690, "stepped": False, "attempt": 0, "incarnation": 0}


def ends_with(report: dict[str, Any]) -> tuple[str, list[str]]:
    """The message of a job whose chief ends well with this report, and its warnings."""
    storage = {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}, "mountPath": "/kept"}
    job = builders.job("Default", checkpoint={"storage": storage})
    chief = builders.pod(job, "chief-0", builders.ended(0, message=json.dumps(report)))
    made = plan(job, Children((chief,)), at(5))
    return made.status["message"], [one.reason for one in made.events if one.type == "Warning"]


def test_a_rerun_with_nothing_left_to_train_says_what_it_found_and_what_to_change():
    message, warnings = ends_with(FOUND)
    assert "nothing was left to train" in message
    assert warnings == ["NothingToTrain"]


@pytest.mark.parametrize(
    "more", [{"stepped": True}, {"restoredStep": 0}, {"restoredStep": 600}, {"attempt": 1}, {"incarnation": 1}], ids=str
)
def test_a_job_that_has_trained_itself_is_no_such_rerun(more: dict[str, Any]):
    message, warnings = ends_with({**FOUND, **more})
    assert ("nothing was left" in message, warnings) == (False, [])


BEFORE_ITS_FIRST_STEP = {"stepped": False, "attempt": 0, "incarnation": 0}


def test_a_program_that_trains_no_step_succeeds_with_a_warning():
    message, warnings = ends_with(BEFORE_ITS_FIRST_STEP)
    assert "trained no step" in message
    assert warnings == ["NothingTrained"]


@pytest.mark.parametrize("more", [{"stepped": True}, {"stepped": None}, {"restoredStep": 600}], ids=str)
def test_a_program_that_trained_or_may_have_trained_succeeds_without_a_warning(more: dict[str, Any]):
    """A loop of the program's own does not say whether it has trained."""
    report = {name: value for name, value in {**BEFORE_ITS_FIRST_STEP, **more}.items() if value is not None}
    assert ends_with(report) == ("training has ended", [])
