"""Events on a job, within what an API server takes."""

from __future__ import annotations

from dtjob.kube.event import event_object
from dtjob.plan.actions import Event
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

JOB = job_manifest(builders.job())
JOB["metadata"]["resourceVersion"] = "7"


def test_an_event_points_to_the_job_and_lies_beside_it() -> None:
    made = event_object(JOB, Event("Warning", "Restarting", "worker-1 failed"), builders.NOW)
    assert made["metadata"]["namespace"] == made["involvedObject"]["namespace"] == "default"
    assert made["involvedObject"]["uid"] == builders.JOB_UID
    assert made["involvedObject"]["resourceVersion"] == "7"
    assert (made["type"], made["reason"], made["message"]) == ("Warning", "Restarting", "worker-1 failed")
    assert made["firstTimestamp"] == made["lastTimestamp"] == "2026-11-21T10:00:00Z"


def test_no_two_have_the_same_name() -> None:
    event = Event("Normal", "Running", "")
    names = {event_object(JOB, event, builders.NOW)["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("digits.") for name in names)


def test_a_message_is_cut_to_what_is_taken() -> None:
    assert len(event_object(JOB, Event("Normal", "A", "x" * 5000), builders.NOW)["message"]) == 1024
