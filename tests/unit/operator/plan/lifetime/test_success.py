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


TOLD = {"attempt": 0, "step": 9}
BEFORE_ITS_FIRST_STEP = {"stepped": False, "attempt": 0, "incarnation": 0}
FOUND = {"restoredStep": 690, "step": 690, "totalSteps": 690, **BEFORE_ITS_FIRST_STEP}


@pytest.mark.parametrize(
    ("report", "warnings"),
    [
        ({**TOLD, "weights": "NaN"}, ["WeightsNotFinite"]),
        ({**TOLD, "weights": "Infinity"}, ["WeightsNotFinite"]),
        ({**TOLD, "weights": ["NaN"]}, []),
        (FOUND, ["NothingToTrain"]),
        ({**FOUND, "stepped": True}, []),
        ({**FOUND, "restoredStep": 0}, []),
        ({**FOUND, "restoredStep": 600}, []),
        ({**FOUND, "attempt": 1}, []),
        ({**FOUND, "incarnation": 1}, []),
        (BEFORE_ITS_FIRST_STEP, ["NothingTrained"]),
        ({**BEFORE_ITS_FIRST_STEP, "stepped": True}, []),
        ({"attempt": 0, "incarnation": 0}, []),  # a loop of the program's own does not say whether it has trained
        ({**BEFORE_ITS_FIRST_STEP, "restoredStep": 600}, []),
    ],
    ids=str,
)
def test_a_success_warns_of_lost_weights_and_of_nothing_trained(report: dict[str, Any], warnings: list[str]):
    job = builders.job("Default")
    chief = builders.pod(job, "chief-0", builders.ended(0, message=json.dumps(report)))
    made = plan(job, Children((chief,)), at(9))
    assert [one.reason for one in made.events if one.type == "Warning"] == warnings
    assert (made.status["reason"], made.status["message"] == "training has ended") == ("Completed", not warnings)
