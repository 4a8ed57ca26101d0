# SPDX-License-Identifier: Apache-2.0
"""The calls that record events."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.backoff import Backoff
from dtjob.kube.api_error import ApiError
from dtjob.kube.events import recorder
from dtjob.kube.events.recorder import Recorder
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
    one = Recorder(calls)
    for _ in range(3):
        await one.record(JOB, EVENT, builders.NOW)
    (post, path, made), *patches = calls.made
    assert (post, path) == ("POST", "/api/v1/namespaces/default/events")
    name = f"{path}/{made['metadata']['name']}"
    assert [(method, where, body["count"]) for method, where, body in patches] == [
        ("PATCH", name, 2),
        ("PATCH", name, 3),
    ]


async def test_an_event_that_expired_is_posted_again_with_its_count() -> None:
    calls = Calls(PATCH=ApiError(404, "NotFound", "gone"))
    one = Recorder(calls)
    for _ in range(2):
        await one.record(JOB, EVENT, builders.NOW)
    assert [method for method, _, _ in calls.made] == ["POST", "PATCH", "POST"]
    assert calls.made[-1][2]["count"] == 2


def recorder_of(call: recorder.Call) -> Recorder:
    return Recorder(call, lambda: builders.NOW)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "PAUSE", Backoff(0.0, 0.0))
    monkeypatch.setattr(recorder, "TRIES", 3)


async def test_a_failed_call_to_record_an_event_raises_nothing(at_once: None) -> None:
    calls = Calls(POST=ClusterError("timeout"), PATCH=ApiError(403, "Forbidden", "no"))
    one = recorder_of(calls)
    for _ in range(2):
        await one.record(JOB, EVENT, builders.NOW)
    assert [method for method, _, _ in calls.made] == ["POST", "POST", "POST", "PATCH"]


@pytest.mark.parametrize(
    "error", [ClusterError("refused"), ApiError(429, "TooManyRequests", "later"), ApiError(503, "", "not ready")]
)
async def test_an_event_is_posted_again_after_an_api_server_was_away(at_once: None, error: ClusterError) -> None:
    calls = Calls(POST=error)

    async def call(method: str, path: str, body: Any) -> dict[str, Any]:
        if calls.made:
            calls.errors.clear()
        return await calls(method, path, body)

    await recorder_of(call).record(JOB, EVENT, builders.NOW)
    (_, _, first), (_, _, second) = calls.made
    assert first == second


async def test_an_event_that_exists_after_an_unanswered_call_is_not_posted_twice(at_once: None) -> None:
    calls = Calls(POST=ApiError(409, "AlreadyExists", "it is there"))
    await Recorder(calls).record(JOB, EVENT, builders.NOW)
    assert len(calls.made) == 1


async def test_an_event_that_is_a_minute_old_is_tried_once(at_once: None) -> None:
    calls = Calls(POST=ClusterError("timeout"))
    await Recorder(calls, lambda: builders.at(60)).record(JOB, EVENT, builders.NOW)
    assert len(calls.made) == 1


@pytest.mark.timeout(20)
async def test_no_answer_has_all_events_wait_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "PAUSE", Backoff(0.0, 0.01))
    monkeypatch.setattr(recorder, "TRIES", 2)
    error = ApiError(503, "", "a proxy's")
    error.retry_after = 3600
    calls = Calls(POST=error)
    await recorder_of(calls).record(JOB, EVENT, builders.NOW)
    assert len(calls.made) == 2
