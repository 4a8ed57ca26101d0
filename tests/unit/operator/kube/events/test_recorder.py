# SPDX-License-Identifier: Apache-2.0
"""The calls that record events."""

import asyncio
from datetime import datetime
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


def job(uid: str) -> dict[str, Any]:
    return {"metadata": {"name": uid, "namespace": "default", "uid": uid}}


class Records(Recorder):
    """Notes what is recorded, once it may go on; a message "bug" raises."""

    def __init__(self) -> None:
        super().__init__(Calls())
        self.made: list[tuple[str, str]] = []
        self.may_go_on = asyncio.Event()

    async def record(self, job: dict[str, Any], event: Event, now: datetime) -> None:
        await self.may_go_on.wait()
        if event.message == "bug":
            raise ValueError("none of the API server's errors")
        self.made.append((job["metadata"]["uid"], event.message))


def event(message: str) -> Event:
    return Event("Normal", "Recorded", message)


async def test_putting_an_event_does_not_wait_and_all_events_are_recorded_before_the_end() -> None:
    records = Records()
    for number in range(20):
        records.put(job(f"job-{number % 3}"), event(str(number)))
    assert records.made == []
    records.may_go_on.set()
    await records.close()
    assert len(records.made) == 20
    for one in range(3):
        told = [int(message) for uid, message in records.made if uid == f"job-{one}"]
        assert told == sorted(told)


async def test_a_bug_in_recording_an_event_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    records = Records()
    records.may_go_on.set()
    for message in ("bug", "well"):
        records.put(job("a"), event(message))
    await records.close()
    assert records.made == [("a", "well")]
    assert "a bug in dtjob, in recording Recorded" in caplog.text


async def test_an_api_server_that_does_not_answer_holds_up_the_end_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "LAST_SECONDS", 0.05)
    records = Records()
    for number in range(3):
        records.put(job("a"), event(str(number)))
    await records.close()
    assert "3 events were not recorded" in caplog.text


async def test_an_event_beyond_the_limit_is_dropped_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An API server that takes no events holds up no job, and no process that is told to end. The many Normal events of
    jobs that lose a zone take no place from Warnings."""
    monkeypatch.setattr(recorder, "LONGEST_LINE", 4)
    monkeypatch.setattr(recorder, "FOR_WARNINGS", 2)
    records = Records()
    for number in range(3):
        records.put(job("a"), event(str(number)))
    for number in range(3):
        records.put(job("a"), Event("Warning", "Lost", f"warning {number}"))
    assert "default/a: event Recorded is dropped: 2 others wait: 2" in caplog.text
    assert "default/a: event Lost is dropped: 4 others wait: warning 2" in caplog.text
    records.may_go_on.set()
    await records.close()
    assert [message for _, message in records.made] == ["0", "1", "warning 0", "warning 1"]
