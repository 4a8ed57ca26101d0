# SPDX-License-Identifier: Apache-2.0
"""Success is the exit 0 of the chief task or of all workers, and nothing else; and which pods an ended job gives up."""

import json
from datetime import datetime
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Delete
from dtjob.plan.lifetime.ending import deletion, pods_to_remove, succeeded
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import JOB_UID, NOW, at


def remove(job: Job, *pods: Manifest, success: bool, now: datetime) -> tuple[list[Delete], datetime | None]:
    """What goes of a job that ended at NOW."""
    phase = Phase.SUCCEEDED if success else Phase.FAILED
    return pods_to_remove(builders.situation(job, *pods, now=now, phase=phase, completion_time=NOW))


def policy(clean: str) -> dict[str, str]:
    return {"cleanPodPolicy": clean}


PS = builders.job("ParameterServer", workers=1, ps=1, evaluator=True)
FAILED_AT_ONCE = [("Running", ["digits-worker-0-0"]), ("All", ["digits-chief-0-0", "digits-worker-0-0"]), ("None", [])]


@pytest.mark.parametrize(
    ("job", "success", "now", "expected"),
    [
        (builders.job(workers=1), True, at(59), ([], at(60))),  # synchronous tasks may end by themselves first
        (builders.job(workers=1), True, at(60), (["digits-worker-0-0"], None)),
        (PS, True, at(1), (["digits-ps-0-0", "digits-worker-0-0"], None)),  # these never end
        *((builders.job(workers=1, **policy(clean)), False, at(1), (gone, None)) for clean, gone in FAILED_AT_ONCE),
    ],
)
def test_the_end_the_strategy_and_the_policy_decide_which_pods_are_deleted(job, success, now, expected):
    pods = builders.all_pods(job, chief_0=builders.ended(0 if success else 1))
    deletes, again = remove(job, *pods.values(), success=success, now=now)
    assert (sorted(one.name for one in deletes), again) == expected


def test_workers_without_a_chief_train_to_their_own_end_and_parameter_servers_never_end():
    job = builders.job("ParameterServer", chief=False, ps=1, program=False)
    pods = builders.all_pods(job, worker_0=builders.ended(0)).values()
    deletes, again = remove(job, *pods, success=True, now=at(59))
    assert ([one.name for one in deletes], again) == (["digits-ps-0-0"], at(60))
    deletes, _ = remove(job, *pods, success=True, now=at(60))
    assert [one.name for one in deletes] == ["digits-worker-1-0", "digits-ps-0-0"]


@pytest.mark.parametrize("clean", ["Running", "All"])
def test_an_evaluator_at_work_has_all_the_time_it_needs(clean: str):
    """One evaluation may take longer than any deadline, and under `checkpoints: Every` several may be left to do."""
    job = builders.job("Mirrored", evaluator=True, **policy(clean))
    pod = builders.pod(job, "evaluator-0", builders.running())
    assert remove(job, pod, success=True, now=at(1)) == ([], None)
    assert remove(job, pod, success=True, now=at(86_400)) == ([], None)
    assert [one.name for one in remove(job, pod, success=False, now=at(1))[0]] == ["digits-evaluator-0-0"]


@pytest.mark.parametrize(
    ("program", "status", "attempt"),
    [
        (False, builders.unschedulable(), 0),
        (False, builders.running(), 1),  # the pod is of attempt 0, which has been given up
        (False, builders.running(), 0),
    ],
)
def test_an_evaluator_that_may_not_end_by_itself_is_deleted_after_a_while(program, status, attempt):
    job = builders.job(
        "Mirrored", evaluator=True, program=program, status=builders.at_attempts({"evaluator-0": attempt})
    )
    pod = builders.pod(job, "evaluator-0", status)
    assert remove(job, pod, success=True, now=at(59)) == ([], at(60))
    deletes, again = remove(job, pod, success=True, now=at(60))
    assert ([one.name for one in deletes], again) == (["digits-evaluator-0-0"], None)


@pytest.mark.parametrize(
    ("clean", "expected"), [("Running", ["digits-chief-0-0"]), ("All", ["digits-chief-0-0"]), ("None", [])]
)
@pytest.mark.parametrize("success", [True, False])
def test_a_pod_that_only_its_sidecar_keeps_goes_at_once(clean: str, expected: list[str], success: bool):
    job = builders.job("Mirrored", **policy(clean))
    status = {**builders.ended(0 if success else 1), "phase": "Running"}
    sidecar = {"name": "shipper", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    kept = {**status, "containerStatuses": [*status["containerStatuses"], sidecar]}
    pod = builders.pod(job, "chief-0", kept)
    deletes, again = remove(job, pod, success=success, now=at(1))
    assert ([one.name for one in deletes], again) == (expected, None)


@pytest.mark.parametrize(
    ("status", "deleted", "success"),
    [({**builders.ended(0), "phase": "Running"}, False, True), (builders.running(), True, False)],
    ids=["its end is not written yet, as on a real node for a second", "it is being deleted"],
)
def test_a_pod_that_is_about_to_go_is_not_deleted(status: dict[str, Any], deleted: bool, success: bool):
    job = builders.job("Mirrored")
    pod = builders.pod(job, "chief-0", status)
    assert remove(job, builders.deleting(pod) if deleted else pod, success=success, now=at(1)) == ([], None)


TTL = {"ttlSecondsAfterFinished": 60}
JOB = [("DistributedTrainingJob", "digits", JOB_UID)]


@pytest.mark.parametrize(
    ("ttl", "phase", "seconds", "lingers", "expected"),
    [
        (None, Phase.SUCCEEDED, 10**8, False, ([], None)),
        (TTL, Phase.SUCCEEDED, 59, False, ([], at(60))),
        (TTL, Phase.SUCCEEDED, 60, False, (JOB, None)),
        (TTL, Phase.FAILED, 59, False, ([], at(60))),
        (TTL, Phase.FAILED, 60, False, (JOB, None)),
        ({"ttlSecondsAfterFinished": 0}, Phase.FAILED, 0, False, (JOB, None)),
        ({"ttlSecondsAfterFinished": 86_400}, Phase.FAILED, 0, False, ([], at(86_400))),
        (TTL, Phase.FAILED, -3600, False, ([], at(60))),  # a clock that is behind
        (TTL, Phase.SUCCEEDED, 60, True, ([], None)),  # pods that end by themselves are waited for
    ],
)
def test_a_job_is_deleted_when_its_time_is_over(ttl, phase, seconds, lingers, expected):
    job = builders.job("Default", **(ttl or {}))
    deletes, again = deletion(builders.situation(job, now=at(seconds), phase=phase, completion_time=NOW), lingers)
    assert ([(one.kind, one.name, one.uid) for one in deletes], again) == expected


def test_an_evaluator_gets_to_what_was_saved_last():
    job = builders.job("Default", evaluator=True, ttlSecondsAfterFinished=0)
    pods = builders.all_pods(job, chief_0=builders.ended(0))

    def deletes(now: float, status: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
        made = plan(builders.with_status(job, status), Children(tuple(pods.values())), at(now))
        return [one.kind for one in made.actions if isinstance(one, Delete)], made.status or status

    gone, status = deletes(0, {})
    assert (gone, status["phase"]) == ([], "Succeeded")
    gone, status = deletes(500, status)
    assert gone == []
    pods["evaluator-0"]["status"] = builders.ended(0)
    assert deletes(501, status)[0] == ["DistributedTrainingJob"]


@pytest.mark.parametrize("reported", [{}, {"chief-0": {"step": 15, "totalSteps": 20}}])
def test_a_failed_job_keeps_the_step_at_which_its_process_failed(reported: dict[str, Any]):
    job = builders.job("Mirrored", failurePolicy={"maxRestarts": 0})
    pods = builders.all_pods(job, chief_0=builders.failed(exception="KeyError: 'label'", stepped=True, step=17))
    children = Children(tuple(pods.values()), reported)
    for _ in range(2):  # the last report is still there at the next look
        job, _ = builders.looked(job, children)
    assert "failed after step 17" in job.status["message"]
    assert (job.status["phase"], job.status["progress"]["step"]) == ("Failed", 17)
    assert job.status["progress"].get("percentage") == (85 if reported else None)


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
