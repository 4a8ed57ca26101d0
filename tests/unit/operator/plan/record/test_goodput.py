# SPDX-License-Identifier: Apache-2.0
"""Goodput as it is counted and as the status keeps it."""

from __future__ import annotations

from dtjob.api.status.goodput import Part
from dtjob.api.status.internal import Doing, Spent
from dtjob.api.status.status import Status
from dtjob.plan.record.goodput import Goodput, kept_ratio
from tests.unit.operator.builders import NOW, at

SPENT = Spent(
    attempt=2, incarnation=1, from_step=40, kept_steps=60, kept=81.25, redone_steps=7, redone=3.5, saving=2.25
)
COUNTED = Goodput(
    NOW,
    Doing.TRAINING,
    {Part.KEPT: 80.0, Part.REDONE: 10.0, Part.WAITING_FOR_PODS: 10.0, Part.UNKNOWN: 5.5},
    kept_steps=90,
    redone_steps=12,
    reported=SPENT,
)


def through_the_status(goodput: Goodput) -> Goodput | None:
    return Goodput.of(Status.read(goodput.written_to(Status()).to_json()), at(-99))


def test_goodput_is_the_same_after_a_write_and_a_read() -> None:
    assert through_the_status(COUNTED) == COUNTED
    part_of_a_second = Goodput(at(0.12), Doing.STARTING, {Part.STARTING: 0.12})
    assert through_the_status(part_of_a_second) == part_of_a_second


def test_the_public_goodput_has_the_percentage_the_seconds_and_the_steps() -> None:
    shown = COUNTED.written_to(Status()).to_json()["goodput"]
    assert shown == {
        "percentage": 80,
        "seconds": {"kept": "80", "redone": "10", "waitingForPods": "10", "unknown": "5.5"},
        "steps": {"kept": 90, "redone": 12},
    }


def test_fields_that_are_not_known_stay() -> None:
    before = Status.read({"goodput": {"newer": [1], "seconds": {"kept": "1", "frozen": "2"}}})
    shown = COUNTED.written_to(before).to_json()["goodput"]
    assert (shown["newer"], shown["seconds"]["frozen"], shown["seconds"]["kept"]) == ([1], "2", "80")


def test_goodput_has_no_percentage_before_a_supervisor_reports_training() -> None:
    waits = Goodput(NOW, Doing.STARTING, {Part.STARTING: 7.0, Part.UNKNOWN: 100.0})
    assert (waits.ratio, waits.percent) == (None, None)
    assert "percentage" not in waits.written_to(Status()).to_json()["goodput"]
    assert Goodput(NOW, Doing.TRAINING, {}, reported=SPENT).percent is None


def test_percent_is_never_rounded_up() -> None:
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 999.0, Part.SAVING: 1.0}, reported=SPENT).percent == 99
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 1.0}, reported=SPENT).percent == 100
    # 0.07 and 0.93 add up to a little more than 1 for a computer
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 0.93, Part.SAVING: 0.07}, reported=SPENT).percent == 93


def test_the_ratio_is_of_the_time_that_is_known() -> None:
    assert kept_ratio({Part.KEPT: 3.0, Part.SAVING: 1.0, Part.UNKNOWN: 96.0}) == 0.75
    assert kept_ratio({Part.UNKNOWN: 96.0}) is None


def test_goodput_without_the_time_of_its_last_count_is_counted_from_now() -> None:
    written = COUNTED.written_to(Status())
    forgotten = written.but(internal=Status().internal)
    found = Goodput.of(forgotten, at(500))
    assert found is not None
    assert (found.until, found.seconds, found.kept_steps) == (at(500), COUNTED.seconds, 90)


def test_nothing_is_counted_before_all_ran() -> None:
    assert Goodput.of(Status(), NOW) is None
