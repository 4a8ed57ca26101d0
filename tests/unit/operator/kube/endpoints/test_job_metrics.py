# SPDX-License-Identifier: Apache-2.0
"""What Prometheus reads of each job."""

from collections.abc import Iterable
from typing import Any

import pytest

from dtjob import times
from dtjob.controller.cluster import JobKey
from dtjob.kube.endpoints.job_metrics import job_metrics
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.simulation.operator import job_manifest

JOB = builders.job(name="a", uid="a")
RUNNING: dict[str, Any] = {
    "phase": "Running",
    "reason": "AllTasksRunning",
    "replicaStatuses": {"chief": {"replicas": 1, "active": 1}, "worker": {"replicas": 3, "active": 2, "succeeded": 1}},
    "progress": {"step": 120, "totalSteps": 400},
    "checkpoint": {"step": 100, "time": "1970-01-01T00:01:00Z"},
    "restarts": {"total": 3, "causes": {"Error": 1, "Disruption": 2}},
    "goodput": {"percentage": 75, "seconds": {"kept": "45.5", "restarting": "14.5", "unknown": "3"}},
}


def stored(name: str = "a", status: Any = None, strategy: Any = "Mirrored") -> Manifest:
    made = job_manifest(builders.job(name=name, uid=name))
    made["spec"]["strategy"] = strategy
    return {**made, "status": status} if status is not None else made


def no_pods(key: JobKey) -> Iterable[Manifest]:
    raise AssertionError(f"the pods of {key} are looked at, though none waits")


def samples(*jobs: Manifest, pods: Iterable[Manifest] | None = None, seconds: float = 0) -> dict[str, float]:
    """Each sample by the name of its metric without `dtjob_` and its labels but the job's namespace."""
    found = {}
    for family in job_metrics(jobs, no_pods if pods is None else lambda key: pods, at(seconds)):
        for sample in family.samples:
            labels = [value for name, value in sample.labels.items() if name != "job_namespace"]
            found[" ".join((sample.name.removeprefix("dtjob_"), *labels))] = sample.value
    return found


def test_a_running_job_has_all_that_its_status_has() -> None:
    assert samples(stored(status=RUNNING)) == {
        "jobs Running Mirrored": 1,
        "job_phase a Running AllTasksRunning": 1,
        "job_tasks a": 4,
        "job_ready_tasks a": 4,
        "job_step a": 120,
        "job_total_steps a": 400,
        "job_checkpoint_step a": 100,
        "job_checkpoint_timestamp_seconds a": 60,
        "job_restarts a Error": 1,
        "job_restarts a Disruption": 2,
        "job_goodput_ratio a": 45.5 / 60,
        "job_time_seconds a kept": 45.5,
        "job_time_seconds a restarting": 14.5,
        "job_time_seconds a unknown": 3,
    }


def test_jobs_are_counted_and_an_ended_job_or_one_of_another_controller_has_no_metrics_of_its_own() -> None:
    ended = stored("c", {**RUNNING, "phase": "Succeeded"})
    theirs = {**stored("d"), "spec": {"strategy": "Mirrored", "managedBy": "kueue.x-k8s.io/multikueue"}}
    assert samples(stored("b"), ended, theirs) == {
        "jobs Pending Mirrored": 1,
        "jobs Succeeded Mirrored": 1,
        "job_phase b Pending ": 1,
    }


def test_tasks_that_wait_are_counted_by_what_they_wait_for() -> None:
    waits = (builders.unschedulable(), builders.unschedulable(), builders.waiting("ErrImagePull"), builders.running())
    tasks = ("chief-0", "worker-0", "worker-1", "worker-2")
    pods = [builders.pod(JOB, task, status) for task, status in zip(tasks, waits, strict=True)]
    status = {"phase": "Pending", "reason": "WaitingForPods", "replicaStatuses": {"worker": {"pending": 3}}}
    found = samples(stored(status=status), pods=pods)
    waiting = {name: value for name, value in found.items() if name.startswith("job_waiting_tasks")}
    assert waiting == {"job_waiting_tasks a Unschedulable": 2, "job_waiting_tasks a ErrImagePull": 1}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (("True", "Answers"), {"job_status_reachable a Answers": 1}),
        (("False", "ConnectTimeout"), {"job_status_reachable a ConnectTimeout": 0}),
        (("Unknown", "Restarting"), {}),
    ],
)
def test_a_condition_says_whether_the_status_can_be_read(said: tuple[str, str], expected: dict[str, float]) -> None:
    condition = {"type": "StatusReachable", "status": said[0], "reason": said[1], "message": ""}
    found = samples(stored(status={"phase": "Running", "conditions": [condition]}))
    assert {name: value for name, value in found.items() if "reachable" in name} == expected


@pytest.mark.parametrize(
    ("seconds", "max_seconds", "checkpoint", "restarts"),
    [(0, None, 7, 3), (0, None, 8, 0), (599, None, 7, 3), (600, None, 7, 0), (600, 3600, 7, 3), (7200, 3600, 7, 0)],
)
def test_restarts_in_a_row_count_until_a_newer_checkpoint_or_a_long_run(
    seconds: float, max_seconds: int | None, checkpoint: int, restarts: int
) -> None:
    began = times.rfc3339(NOW)
    incident = {"startedAt": began, "notBefore": began, "cause": "OOMKilled", "inARow": 3, "checkpointStep": 7}
    status = {
        "phase": "Running",
        "conditions": [builders.condition("Running")],
        "checkpoint": {"step": checkpoint},
        "internal": {"incident": incident},
    }
    job = stored(status=status)
    if max_seconds is not None:
        job["spec"]["failurePolicy"] = {"backoff": {"maxSeconds": max_seconds}}
    found = samples(job, seconds=seconds)
    assert found.get("job_restarts_without_progress a OOMKilled", 0) == restarts


def test_a_manifest_of_any_form_can_be_counted() -> None:
    """Old rules, or another hand, may have let it in. That must not take the metrics of other jobs away."""
    odd = [
        stored(
            "a",
            {
                "phase": "Running",
                "reason": 3,
                "replicaStatuses": {"chief": 3},
                "progress": "fast",
                "conditions": "good",
                "restarts": {"causes": {"Error": "often"}},
                "internal": {"incident": 5},
            },
            strategy=["x"],
        ),
        {**stored("b"), "spec": "none"},
        stored(
            "c",
            {
                "phase": "Running",
                "progress": {"step": "many"},
                "checkpoint": {"time": "late"},
                "goodput": "high",
                "conditions": [7, {"type": "StatusReachable"}],
            },
        ),
    ]
    found = samples(*odd)
    assert sum(value for name, value in found.items() if name.startswith("jobs ")) == 3
    assert {name for name in found if not name.startswith(("jobs ", "job_phase "))} == set()
