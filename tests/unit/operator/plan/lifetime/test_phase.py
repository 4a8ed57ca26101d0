# SPDX-License-Identifier: Apache-2.0
"""Where a job stands."""

from typing import Any

import pytest

from dtjob.api.phase import Phase
from dtjob.api.status.activity import Activity
from dtjob.api.status.internal import Incident
from dtjob.api.status.restarts import LastFailure
from dtjob.objects.shared import shared_objects
from dtjob.plan.lifetime.phase import current_phase
from dtjob.plan.plan import plan
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.status import PhaseStatus
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

RAN = {"active": Activity(since=NOW, all_ran_time=NOW)}
FAILED = LastFailure(task="worker-1", cause="OOMKilled", message="ran out of memory (OOMKilled)")


def stand(
    strategy: str = "MultiWorkerMirrored",
    *,
    without: tuple[str, ...] = (),
    finished: tuple[str, ...] = (),
    chief: bool = True,
    **status: Any,
) -> PhaseStatus:
    """The phase of a job whose tasks all run, but for those that have finished and those without a pod."""
    job = builders.job(strategy, evaluator=True, ps=strategy == "ParameterServer", chief=chief, program=chief)
    states = {**dict.fromkeys(without), **dict.fromkeys(finished, builders.ended(0))}
    return current_phase(builders.situation(job, *builders.all_pods(job, **states).values(), **status))


@pytest.mark.parametrize(
    ("strategy", "without", "status", "phase", "reason"),
    [
        ("MultiWorkerMirrored", (), {}, Phase.RUNNING, "AllTasksRunning"),
        ("MultiWorkerMirrored", ("evaluator-0",), {}, Phase.RUNNING, "AllTasksRunning"),
        ("MultiWorkerMirrored", ("worker-0",), {}, Phase.PENDING, "WaitingForPods"),
        ("MultiWorkerMirrored", ("worker-0",), RAN, Phase.RESTARTING, "Restarting"),
        ("ParameterServer", ("worker-0",), RAN, Phase.RUNNING, "WorkersMissing"),
        ("ParameterServer", ("worker-0",), {}, Phase.PENDING, "WaitingForPods"),  # it has yet to begin with all of them
        ("ParameterServer", ("worker-0", "worker-1"), RAN, Phase.RESTARTING, "Restarting"),
        ("ParameterServer", ("ps-0",), RAN, Phase.RESTARTING, "Restarting"),
    ],
)
def test_the_strategy_decides_without_which_tasks_a_job_runs(strategy, without, status, phase, reason):
    assert stand(strategy, without=without, **status)[:2] == (phase, reason)


def test_a_job_runs_on_when_a_task_has_done_its_part():
    assert stand(finished=("worker-1",)).phase is Phase.RUNNING


@pytest.mark.parametrize(("without", "phase"), [("worker-0", Phase.RESTARTING), ("worker-1", Phase.RUNNING)])
def test_without_a_chief_nothing_goes_on_without_worker_0(without: str, phase: Phase):
    assert stand("ParameterServer", without=(without,), chief=False, **RAN).phase is phase


def test_a_restart_before_the_first_run_is_one_too_and_names_the_wait():
    incident = Incident(started_at=NOW, cause=Cause.OOM_KILLED, not_before=at(10))
    found = stand(without=("worker-1",), incident=incident, last_failure=FAILED)
    assert found[:2] == (Phase.RESTARTING, "OOMKilled")
    assert "2026-11-21T10:00:10Z" in found.message


def test_the_message_names_first_what_a_pod_waits_for():
    job = builders.job()
    pods = builders.all_pods(job, worker_1=builders.unschedulable("no GPU"))
    words = "worker-1 waits: Unschedulable: no GPU"
    assert current_phase(builders.situation(job, *pods.values(), last_failure=FAILED, **RAN)).message == words
    assert current_phase(builders.situation(job, *pods.values())).message == words


JOB = builders.job()
IN_USE = "checkpoint.storage /checkpoints is in use by job default/first (uid 1); waiting until it ends"


@pytest.mark.parametrize(
    "report",
    [
        {"state": "starting"},
        {"state": "training", "step": 1, "message": "other"},
        {"state": "starting", "message": IN_USE, "attempt": 7},
    ],
    ids=["no message", "trains", "of an earlier pod"],
)
def test_a_job_that_waits_for_nothing_has_no_message(report: dict[str, Any]) -> None:
    objects = (*builders.all_pods(JOB).values(), *map(builders.stored, shared_objects(JOB)))
    status = plan(JOB, Children(objects, {"chief-0": report}), NOW).status
    assert (status["phase"], status["reason"], status["message"]) == ("Running", "AllTasksRunning", "")
