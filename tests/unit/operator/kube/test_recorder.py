"""The calls that record events."""

from __future__ import annotations

from typing import Any

from dtjob.controller.cluster import ClusterError
from dtjob.kube.api_error import ApiError
from dtjob.kube.recorder import Recorder
from dtjob.plan.actions import Event
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

JOB = job_manifest(builders.job())
JOB["metadata"]["resourceVersion"] = "7"
EVENT = Event("Normal", "Running", "well")


class Calls:
    """Notes calls; those of a method in `errors` fail."""

    def __init__(self, **errors: ClusterError) -> None:
        self.errors = errors
        self.made: list[tuple[str, str, Any]] = []

    async def __call__(self, method: str, path: str, body: Any) -> dict[str, Any]:
        self.made.append((method, path, body))
        if error := self.errors.get(method):
            raise error
        return {}


async def test_an_event_is_posted_once_and_then_counted() -> None:
    calls = Calls()
    recorder = Recorder(calls)
    for _ in range(3):
        await recorder.record(JOB, EVENT, builders.NOW)
    (post, path, made), *patches = calls.made
    assert (post, path) == ("POST", "/api/v1/namespaces/default/events")
    name = f"{path}/{made['metadata']['name']}"
    assert [(method, where, body["count"]) for method, where, body in patches] == [
        ("PATCH", name, 2),
        ("PATCH", name, 3),
    ]


async def test_one_that_expired_is_posted_again_with_its_count() -> None:
    calls = Calls(PATCH=ApiError(404, "NotFound", "gone"))
    recorder = Recorder(calls)
    for _ in range(2):
        await recorder.record(JOB, EVENT, builders.NOW)
    assert [method for method, _, _ in calls.made] == ["POST", "PATCH", "POST"]
    assert calls.made[-1][2]["count"] == 2


async def test_a_failure_is_nobodys_problem() -> None:
    recorder = Recorder(Calls(POST=ClusterError("timeout"), PATCH=ApiError(403, "Forbidden", "no")))
    for _ in range(2):
        await recorder.record(JOB, EVENT, builders.NOW)
