# SPDX-License-Identifier: Apache-2.0
"""Events on a job, within what an API server takes, and the calls that record them."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.backoff import Backoff
from dtjob.kube import events
from dtjob.kube.api_error import ApiError
from dtjob.kube.events import (
    COMBINED,
    LONGEST_WARNING,
    MOST_ALIKE,
    REMEMBERED,
    WINDOW,
    Correlator,
    Recorded,
    Recorder,
    event_object,
    newest_warning,
    repetition,
)
from dtjob.plan.actions import Event
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.simulation.operator import job_manifest

JOB = job_manifest(builders.job())
JOB["metadata"]["resourceVersion"] = "7"
RESTARTING = Event("Warning", "Restarting", "worker-1 failed")


def test_an_event_points_to_the_job_and_lies_beside_it() -> None:
    made = event_object(JOB, Recorded(RESTARTING, "1a2b", 1, NOW, NOW))
    assert made["metadata"] == {"name": "digits.1a2b", "namespace": "default"}
    assert made["involvedObject"]["namespace"] == "default"
    assert made["involvedObject"]["uid"] == builders.JOB_UID
    assert made["involvedObject"]["resourceVersion"] == "7"
    assert (made["type"], made["reason"], made["message"]) == ("Warning", "Restarting", "worker-1 failed")
    assert made["firstTimestamp"] == made["lastTimestamp"] == "2026-11-21T10:00:00Z"


def test_a_message_is_cut_to_what_is_taken() -> None:
    assert len(repetition(Recorded(Event("Normal", "A", "x" * 5000), "1a2b", 1, NOW, NOW))["message"]) == 1024


def warning(reason: str, message: str, **times: object) -> dict[str, object]:
    return {"reason": reason, "message": message, **times}


def test_the_newest_warning_about_a_pod_is_one_line() -> None:
    told = [
        warning("FailedMount", "old", lastTimestamp="2026-11-21T10:00:00Z"),
        warning("FailedAttachVolume", "new:\n  no disk", eventTime="2026-11-21T10:05:00Z", lastTimestamp=None),
        warning("FailedMount", "older", series={"lastObservedTime": "2026-11-21T10:04:00Z"}),
        warning("FailedScheduling", "no node", lastTimestamp="2026-11-21T10:06:00Z"),
    ]
    assert newest_warning(told) == "FailedAttachVolume: new: no disk"
    assert newest_warning(told[3:]) == ""
    assert len(newest_warning([warning("FailedMount", "x" * 2000)])) == LONGEST_WARNING


EVENT = Event("Warning", "FailedCreate", "exceeded quota")


def test_an_equal_event_is_counted_for_ten_minutes():
    correlator = Correlator()
    first = replace(correlator.correlate("a", EVENT, NOW))
    again = replace(correlator.correlate("a", EVENT, at(60)))
    assert (first.count, again.count) == (1, 2)
    assert (again.suffix, again.first, again.last, again.event) == (first.suffix, NOW, at(60), EVENT)
    later = correlator.correlate("a", EVENT, at(60) + WINDOW + timedelta(seconds=1))
    assert later.count == 1
    assert later.suffix != first.suffix


def test_an_event_with_another_job_reason_or_message_is_another_event():
    correlator = Correlator()
    others = [Event("Warning", "FailedCreate", "a"), Event("Warning", "Failed", "exceeded quota")]
    recorded = [correlator.correlate("a", one, NOW) for one in (EVENT, *others)] + [
        correlator.correlate("b", EVENT, NOW)
    ]
    assert [one.count for one in recorded] == [1, 1, 1, 1]
    assert len({one.suffix for one in recorded}) == 4


def test_an_operator_that_begins_tells_of_a_version_of_a_job_what_the_last_one_told_under_the_same_name() -> None:
    killed, begun = (Correlator().correlate("a", EVENT, at(second), "7") for second in (1, 2))
    assert killed.suffix == begun.suffix
    assert Correlator().correlate("a", EVENT, at(2), "8").suffix != killed.suffix


def test_many_similar_events_are_combined_into_one():
    correlator = Correlator()
    recorded = [
        correlator.correlate("a", Event("Warning", "FailedCreate", f"pod {n}"), at(n)) for n in range(4 * MOST_ALIKE)
    ]
    assert len({one.suffix for one in recorded}) == MOST_ALIKE + 1
    assert recorded[-1].count == 3 * MOST_ALIKE
    assert recorded[-1].event.message == f"{COMBINED}pod {4 * MOST_ALIKE - 1}"


def test_the_number_of_remembered_events_is_bounded():
    correlator = Correlator()
    for number in range(REMEMBERED + 100):
        correlator.correlate(f"job {number}", EVENT, NOW)
    assert len(correlator._known) == REMEMBERED
    assert correlator.correlate("job 0", EVENT, NOW).count == 1


RUNNING = Event("Normal", "Running", "well")


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
        await one.record(JOB, RUNNING, builders.NOW)
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
        await one.record(JOB, RUNNING, builders.NOW)
    assert [method for method, _, _ in calls.made] == ["POST", "PATCH", "POST"]
    assert calls.made[-1][2]["count"] == 2


def recorder_of(call: events.Call) -> Recorder:
    return Recorder(call, lambda: builders.NOW)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE", Backoff(0.0, 0.0))
    monkeypatch.setattr(events, "TRIES", 3)


async def test_a_failed_call_to_record_an_event_raises_nothing(at_once: None) -> None:
    calls = Calls(POST=ClusterError("timeout"), PATCH=ApiError(403, "Forbidden", "no"))
    one = recorder_of(calls)
    for _ in range(2):
        await one.record(JOB, RUNNING, builders.NOW)
    assert [method for method, _, _ in calls.made] == ["POST", "POST", "POST", "PATCH"]


@pytest.mark.parametrize(
    "error",
    [
        ClusterError("refused"),
        ApiError(429, "TooManyRequests", "later"),
        ApiError(500, "InternalError", "etcdserver: leader changed"),
        ApiError(503, "", "not ready"),
        ApiError(504, "Timeout", "etcdserver: request timed out"),
    ],
)
async def test_an_event_is_posted_again_after_an_api_server_was_away(at_once: None, error: ClusterError) -> None:
    calls = Calls(POST=error)

    async def call(method: str, path: str, body: Any) -> dict[str, Any]:
        if calls.made:
            calls.errors.clear()
        return await calls(method, path, body)

    await recorder_of(call).record(JOB, RUNNING, builders.NOW)
    (_, _, first), (_, _, second) = calls.made
    assert first == second


async def test_an_event_that_exists_after_an_unanswered_call_is_not_posted_twice(at_once: None) -> None:
    calls = Calls(POST=ApiError(409, "AlreadyExists", "it is there"))
    await Recorder(calls).record(JOB, RUNNING, builders.NOW)
    assert len(calls.made) == 1


async def test_an_event_that_is_a_minute_old_is_tried_once(at_once: None) -> None:
    calls = Calls(POST=ClusterError("timeout"))
    await Recorder(calls, lambda: builders.at(60)).record(JOB, RUNNING, builders.NOW)
    assert len(calls.made) == 1


@pytest.mark.timeout(20)
async def test_no_answer_has_all_events_wait_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE", Backoff(0.0, 0.01))
    monkeypatch.setattr(events, "TRIES", 2)
    error = ApiError(503, "", "a proxy's")
    error.retry_after = 3600
    calls = Calls(POST=error)
    await recorder_of(calls).record(JOB, RUNNING, builders.NOW)
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
    monkeypatch.setattr(events, "LAST_SECONDS", 0.05)
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
    monkeypatch.setattr(events, "LONGEST_LINE", 4)
    monkeypatch.setattr(events, "FOR_WARNINGS", 2)
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
