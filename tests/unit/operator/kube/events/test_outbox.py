# SPDX-License-Identifier: Apache-2.0
"""Events on their way: nobody waits for them, none is lost, and those of one job keep their order."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from dtjob.kube.events import outbox
from dtjob.kube.events.outbox import Outbox
from dtjob.plan.actions import Event


def job(uid: str) -> dict[str, Any]:
    return {"metadata": {"name": uid, "namespace": "default", "uid": uid}}


class Records:
    """Notes what is recorded, once it may go on; a message "bug" raises."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.may_go_on = asyncio.Event()

    async def __call__(self, job: dict[str, Any], event: Event, when: datetime) -> None:
        await self.may_go_on.wait()
        if event.message == "bug":
            raise ValueError("none of the API server's errors")
        self.made.append((job["metadata"]["uid"], event.message))


def event(message: str) -> Event:
    return Event("Normal", "Recorded", message)


async def test_putting_an_event_does_not_wait_and_all_events_are_recorded_before_the_end() -> None:
    records = Records()
    box = Outbox(records)
    for number in range(20):
        box.put(job(f"job-{number % 3}"), event(str(number)))
    assert records.made == []
    records.may_go_on.set()
    await box.close()
    assert len(records.made) == 20
    for one in range(3):
        told = [int(message) for uid, message in records.made if uid == f"job-{one}"]
        assert told == sorted(told)


async def test_a_bug_in_recording_an_event_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    records = Records()
    records.may_go_on.set()
    box = Outbox(records)
    for message in ("bug", "well"):
        box.put(job("a"), event(message))
    await box.close()
    assert records.made == [("a", "well")]
    assert "a bug in dtjob, in recording Recorded" in caplog.text


async def test_an_api_server_that_does_not_answer_holds_up_the_end_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "LAST_SECONDS", 0.05)
    box = Outbox(Records())
    for number in range(3):
        box.put(job("a"), event(str(number)))
    await box.close()
    assert "3 events were not recorded" in caplog.text


async def test_an_event_beyond_the_limit_is_dropped_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An API server that takes no events holds up no job, and no process that is told to end."""
    monkeypatch.setattr(outbox, "LONGEST_LINE", 2)
    records = Records()
    box = Outbox(records)
    for number in range(3):
        box.put(job("a"), event(str(number)))
    assert "default/a: event Recorded is dropped: 2 others wait: 2" in caplog.text
    records.may_go_on.set()
    await box.close()
    assert [message for _, message in records.made] == ["0", "1"]


async def test_an_outbox_without_events_closes_at_once() -> None:
    await Outbox(Records()).close()
