# SPDX-License-Identifier: Apache-2.0
"""Tasks that run and cannot reach each other: status and event say so after half a minute."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Plan
from dtjob.plan.seen.children import Children, Silence
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job()
NO_NAME = "gaierror: [Errno -2] Name or service not known"
WAITS = {"chief-0": {"state": "waiting", "unreached": {"worker-0": "", "worker-1": ""}}}


def seen(reports: dict[str, dict[str, Any]], silent: tuple[str, ...] = (), **states: dict[str, Any]) -> Children:
    """The job's pods, which run, but for those with another state."""
    pods = builders.all_pods(JOB)
    for task, state in states.items():
        pods[task.replace("_", "-")]["status"] = state
    silences = {task: Silence("uid", "10.0.0.7:2223", NOW, "NoAnswer", "") for task in silent}
    objects = (*pods.values(), *map(builders.stored, shared_objects(JOB)))
    return Children(objects, reports, silences=silences)


def planned(children: Children, seconds: float, job: Job = JOB) -> tuple[Job, Plan]:
    return builders.looked(job, children, at(seconds))


def test_a_job_whose_tasks_cannot_reach_each_other_says_so_once() -> None:
    children = seen({**WAITS, "worker-0": {"unreached": {"chief-0": NO_NAME}}})
    job, made = planned(children, 29)
    assert (job.status["reason"], job.status["message"], made.look_again_at) == ("AllTasksRunning", "", at(30))
    job, made = planned(children, 30, job)
    assert (job.status["phase"], job.status["reason"]) == ("Running", "TasksUnreachable")
    words = ("chief-0", "worker-0, worker-1", NO_NAME, "NetworkPolicy", "egress", "2222", "2224", "DNS")
    assert all(word in job.status["message"] for word in words)
    (event,) = made.events
    assert (event.type, event.reason, event.message) == ("Warning", "TasksUnreachable", job.status["message"])
    job, made = planned(children, 40, job)
    assert (made.status, made.events) == (None, ())


def test_the_message_has_the_reason_that_the_chief_reports() -> None:
    children = seen({"chief-0": {"unreached": {"worker-1": "its name does not resolve"}}})
    job, _ = planned(children, 30)
    assert "by worker-1, though" in job.status["message"]
    assert "chief-0 says: its name does not resolve" in job.status["message"]


def test_the_message_ends_when_the_chief_trains() -> None:
    job, _ = planned(seen(WAITS), 30)
    job, made = planned(seen({"chief-0": {"state": "training", "step": 1}}), 60, job)
    assert (job.status["reason"], job.status["message"], made.events) == ("AllTasksRunning", "", ())


@pytest.mark.parametrize(
    "children",
    [
        seen({"chief-0": {"state": "waiting"}}),
        seen({"chief-0": {"unreached": ["worker-0"]}}),
        seen({"chief-0": {"unreached": {"worker-7": ""}}}),
        seen({"chief-0": {**WAITS["chief-0"], "attempt": 1}}),
        seen(WAITS, silent=("chief-0",)),
        seen({"worker-0": {"unreached": {"chief-0": NO_NAME}}}),
    ],
    ids=["hears all", "no report of ours", "no such task", "another attempt", "silent", "nobody knows of the chief"],
)
def test_only_a_current_report_of_the_chief_names_unreached_tasks(children: Children) -> None:
    job, _ = planned(children, 600)
    assert job.status["reason"] == "AllTasksRunning"


def test_a_pod_that_does_not_run_is_what_the_job_waits_for() -> None:
    job, _ = planned(seen(WAITS, worker_0=builders.unschedulable("no GPU")), 600)
    assert (job.status["phase"], job.status["message"]) == ("Pending", "worker-0 waits: Unschedulable: no GPU")
