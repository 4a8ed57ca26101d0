"""The status: JSON to value and back with nothing lost, and what each writer changes."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.api.phase import Phase
from dtjob.plan.attempts import Attempts
from dtjob.plan.conditions import BLOCKED
from dtjob.plan.failure import Cause
from dtjob.plan.status import (
    Restarts,
    Status,
    bump_attempts,
    count_restart,
    count_tasks,
    replica_statuses,
    set_condition,
    set_phase,
)
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

WHOLE: dict[str, Any] = {
    "observedGeneration": 3,
    "phase": "Restarting",
    "reason": "Error",
    "message": "",
    "conditions": [
        {
            "type": "Running",
            "status": "False",
            "reason": "Error",
            "message": "",
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }
    ],
    "image": "dtjob-trainer:dev",
    "ready": "2/3",
    "startTime": "2026-11-21T09:00:00Z",
    "completionTime": "2026-11-21T11:00:00Z",
    "replicaStatuses": {"worker": {"replicas": 2, "active": 1, "failed": 1}},
    "progress": {"step": 5, "time": "2026-11-21T10:00:00Z"},
    "checkpoint": {"step": 4},
    "evaluation": {"step": 3},
    "restarts": {"total": 2, "causes": {"Error": 2}, "evaluator": 1},
    "firstFailure": {"task": "worker-0", "cause": "Error"},
    "incident": {
        "startedAt": "2026-11-21T10:00:00Z",
        "cause": "Error",
        "notBefore": "2026-11-21T10:00:10Z",
        "charged": 2,
        "inARow": 2,
        "checkpointStep": -1,
        "attempts": {"worker-0": 1},
    },
    "attempts": {"worker-0": 2},
    "allCreated": False,
}


def of_a_newer_operator() -> dict[str, Any]:
    """The whole status with a field more in every block that has a form of its own."""
    more = {"stalledSince": ["2026-11-21T10:00:00Z"]}
    blocks = {name: {**WHOLE[name], **more} for name in ("progress", "restarts", "firstFailure", "incident")}
    return {**WHOLE, **blocks, "conditions": [{**WHOLE["conditions"][0], **more}], "suspension": more, "quota": None}


@pytest.mark.parametrize("fields", [WHOLE, of_a_newer_operator()], ids=["ours", "a newer operator's"])
def test_nothing_is_lost_between_json_and_json(fields: dict[str, Any]):
    assert Status.from_json(fields).to_json() == fields


def test_a_first_status_says_only_what_is_known():
    assert Status.from_json({}) == Status()
    assert Status().to_json() == {"conditions": [], "restarts": {"total": 0}}


def test_writers_keep_what_a_newer_operator_wrote():
    status = Status.from_json(of_a_newer_operator())
    status = set_phase(status, Phase.RUNNING, "AllTasksRunning", "", NOW)
    status = count_restart(
        bump_attempts(status, [builders.task("worker-0")], []),
        Cause.SIGNAL,
        instead_of=Cause.ERROR,
    )
    written = status.to_json()
    assert {"suspension", "quota"} <= written.keys()
    blocks = (written["restarts"], written["incident"], written["conditions"][0])
    assert all("stalledSince" in block for block in blocks)


def held(status: Status) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status.conditions}


def test_a_phase_has_the_condition_of_its_name_and_takes_it_from_the_others():
    pending = set_phase(Status(), Phase.PENDING, "WaitingForPods", "no GPU", NOW)
    assert (pending.phase, pending.reason, pending.message) == (Phase.PENDING, "WaitingForPods", "no GPU")
    assert held(pending) == {}
    running = set_phase(pending, Phase.RUNNING, "AllTasksRunning", "", at(5))
    restarting = set_phase(running, Phase.RESTARTING, "Error", "", at(9))
    assert held(running) == {"Running": "True"}
    assert held(restarting) == {"Running": "False", "Restarting": "True"}
    assert (running.ever("Running"), restarting.ever("Running"), pending.ever("Running")) == (True, True, False)


def test_a_life_starts_once_and_ends_once():
    first = set_phase(Status(), Phase.PENDING, "WaitingForPods", "", NOW)
    second = set_phase(first, Phase.RUNNING, "AllTasksRunning", "", at(5))
    assert (second.start_time, second.completion_time, second.ended) == ("2026-11-21T10:00:00Z", None, False)
    for end in (Phase.SUCCEEDED, Phase.FAILED):
        over = set_phase(second, end, "Completed", "", at(9.7))
        assert (over.completion_time, over.ended) == (at(9), True)  # as it is read back
        assert Status.from_json(over.to_json()) == over


def test_a_condition_that_is_no_phase_leaves_the_phase_alone():
    running = set_phase(Status(), Phase.RUNNING, "AllTasksRunning", "", NOW)
    blocked = set_condition(running, BLOCKED, True, "CannotCreate", "quota", at(1))
    assert held(blocked) == {"Running": "True", "Blocked": "True"}
    assert (blocked.phase, blocked.reason) == (Phase.RUNNING, "AllTasksRunning")


def test_a_new_attempt_is_not_created_yet():
    status = Status(attempts=Attempts({"worker-0": 1}), all_created=True)
    tasks = [builders.task("worker-0"), builders.task("chief-0")]
    bumped = bump_attempts(status, tasks, tasks)
    assert (bumped.attempts, bumped.all_created) == (Attempts({"worker-0": 2, "chief-0": 1}), False)
    assert status.attempts == Attempts({"worker-0": 1})


@pytest.mark.parametrize(
    ("causes", "cause", "instead_of", "total", "expected"),
    [
        ({}, Cause.ERROR, None, 1, {"Error": 1}),
        ({"Error": 2}, Cause.ERROR, None, 3, {"Error": 3}),
        ({"Error": 2}, Cause.DELETED, None, 3, {"Error": 2, "Deleted": 1}),
        ({"Error": 2}, Cause.DISRUPTION, Cause.ERROR, 2, {"Error": 1, "Disruption": 1}),
        ({"Error": 1}, Cause.DISRUPTION, Cause.ERROR, 1, {"Disruption": 1}),
        ({"Error": 1}, Cause.ERROR, Cause.ERROR, 1, {"Error": 1}),
        ({"Ours": 1, "Error": 1}, Cause.ERROR, None, 3, {"Ours": 1, "Error": 2}),
    ],
)
def test_a_restart_is_counted_once_under_the_cause_known_last(
    causes: dict[str, int], cause: Cause, instead_of: Cause | None, total: int, expected: dict[str, int]
):
    before = Status(restarts=Restarts(sum(causes.values()), causes, evaluator=4))
    after = count_restart(before, cause, instead_of)
    assert after.restarts == Restarts(total, expected, evaluator=4)
    assert before.restarts.causes == causes


def test_tasks_are_counted_by_role_and_state():
    job = builders.job(workers=3)
    worker = {
        0: builders.pod(job, "worker-0", builders.running()),
        1: builders.pod(job, "worker-1", builders.out_of_memory()),
    }
    chief = builders.pod(job, "chief-0", builders.ended(0))
    status = count_tasks(Status(), builders.views(job, chief, *worker.values()))
    assert status.ready == "2/4"
    assert status.replica_statuses == {
        "chief": {"replicas": 1, "succeeded": 1},
        "worker": {"replicas": 3, "active": 1, "failed": 1},
    }


def test_a_lost_pod_counts_as_failed_and_a_waiting_one_as_pending():
    job = builders.job("ParameterServer", workers=1, ps=1)
    lost = builders.deleting(builders.pod(job, "ps-0", builders.running()), NOW, grace=30)
    pods = builders.pod(job, "chief-0", builders.running()), builders.pod(job, "worker-0", builders.unschedulable())
    assert replica_statuses(builders.views(job, *pods, lost, now=at(45))) == {
        "chief": {"replicas": 1, "active": 1},
        "worker": {"replicas": 1, "pending": 1},
        "ps": {"replicas": 1, "failed": 1},
    }
