# SPDX-License-Identifier: Apache-2.0
from dtjob.ui.views import detail, row, shown_manifest
from tests.unit.operator.client.verbs.jobs import NOW, RUNNING, job, pod


def test_a_row_has_what_the_status_says() -> None:
    status = {**RUNNING, "progress": {**RUNNING["progress"], "inputWaitPercentage": 62}}
    found = row(job(**status, goodput={"percentage": 97}))
    assert (found["namespace"], found["name"], found["phase"]) == ("team", "digits", "Running")
    assert (found["step"], found["totalSteps"], found["percentage"], found["goodput"]) == (251, 690, 36, 97)
    assert (found["stepsPerSecond"], found["secondsLeft"], found["restarts"]) == ("9.5", 46, 2)
    assert found["inputWait"] == 62


def test_a_job_that_does_not_run_has_no_speed() -> None:
    found = row(job(**{**RUNNING, "phase": "Suspended"}))
    assert (found["step"], found["stepsPerSecond"], found["secondsLeft"]) == (251, None, None)


def test_a_job_without_a_status_is_pending() -> None:
    found = row({**job(), "status": None})
    assert (found["phase"], found["step"], found["restarts"]) == ("Pending", None, 0)
    assert detail({**job(), "status": None}, (), {})["incidents"] == []


def test_the_detail_has_a_row_for_each_task_and_the_facts_of_the_status() -> None:
    incidents = [{"task": "worker-1", "reason": "Signal", "fromStep": 10, "toStep": 5}]
    reports = {"worker-0": {"attempt": 1, "state": "training", "step": 7, "loss": 0.5}}
    pods = [pod("worker-0"), pod("worker-0", 1), pod("worker-1", state={"waiting": {"reason": "ErrImagePull"}})]
    found = detail(job(**RUNNING, incidents=incidents), pods, reports, "no right", NOW)
    assert [cells[:6] for cells in found["tasks"]] == [
        ("worker-0", "training", "7", "", "0.5", "1"),
        ("worker-1", "ErrImagePull", "", "", "", "0"),
    ]
    assert ("checkpoint", "step 200, 1m ago, in claim data") in found["facts"]
    assert (found["incidents"], found["why"], found["moreTasks"]) == (incidents, "no right", 0)


def test_the_manifest_is_shown_without_what_machines_read() -> None:
    stored = job(phase="Running", internal={"a": 1})
    stored["metadata"]["managedFields"] = [{}]
    found = shown_manifest(stored)
    assert found["status"] == {"phase": "Running"}
    assert "managedFields" not in found["metadata"]
    assert found["spec"] == stored["spec"]
