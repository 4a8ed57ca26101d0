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
    ("policy", "strategy", "chief", "finished", "success"),
    [
        ("Chief", "MultiWorkerMirrored", True, ("chief-0",), True),
        ("Chief", "MultiWorkerMirrored", True, ("worker-0",), False),
        ("Chief", "MultiWorkerMirrored", False, ("worker-0",), True),
        ("Chief", "MultiWorkerMirrored", False, ("worker-1",), False),
        ("AllWorkers", "MultiWorkerMirrored", True, ("chief-0",), False),
        ("AllWorkers", "MultiWorkerMirrored", True, ("worker-0", "worker-1"), False),
        ("AllWorkers", "MultiWorkerMirrored", True, ("chief-0", "worker-0", "worker-1"), True),
        ("AllWorkers", "MultiWorkerMirrored", False, ("worker-0",), False),
        ("AllWorkers", "MultiWorkerMirrored", False, ("worker-0", "worker-1"), True),
        ("AllWorkers", "ParameterServer", False, ("worker-0", "ps-0"), False),
        ("AllWorkers", "ParameterServer", False, ("worker-0", "worker-1"), True),  # parameter servers never end
    ],
)
def test_a_job_succeeds_with_its_chief_task_or_all_workers_as_it_says(policy, strategy, chief, finished, success):
    ps = strategy == "ParameterServer"
    job = builders.job(strategy, chief=chief, ps=int(ps), program=not ps, evaluator=True, successPolicy=policy)
    pods = builders.all_pods(job, **dict.fromkeys(finished, builders.ended(0)))
    assert succeeded(builders.situation(job, *pods.values())) is success


@pytest.mark.parametrize("program", [True, False])
@pytest.mark.parametrize(
    "end", [builders.ended(0, at(5)), builders.disrupted() | builders.ended(0, at(5))], ids=["deleted", "evicted"]
)
def test_a_chief_that_finishes_while_its_pod_is_deleted_has_succeeded_if_it_is_supervised(
    end: dict[str, Any], program: bool
):
    job = builders.job("Mirrored", program=program)
    pod = builders.deleting(builders.pod(job, "chief-0", {**end, "phase": "Failed"}))
    assert succeeded(builders.situation(job, pod, now=at(6))) is program


@pytest.mark.parametrize(
    ("weights", "warnings"), [('"NaN"', ["WeightsNotFinite"]), ('"Infinity"', ["WeightsNotFinite"]), ('["NaN"]', [])]
)
def test_weights_that_are_not_finite_are_reported_when_a_job_succeeds(weights: str, warnings: list[str]):
    job = builders.job("Default")
    report = f'{{"attempt": 0, "step": 9, "weights": {weights}}}'
    made = plan(job, Children((builders.pod(job, "chief-0", builders.ended(0, message=report)),)), at(9))
    assert made.status["reason"] == "Completed"
    assert ("weights" in made.status["message"]) is bool(warnings)
    assert [one.reason for one in made.events if one.type == "Warning"] == warnings


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
