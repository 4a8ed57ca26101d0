"""Goodput as the status keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.plan.goodput import Doing, Goodput, Part, Spent
from tests.unit.operator.builders import NOW

SPENT = Spent(2, 1, from_step=40, kept_steps=60, kept=81.25, redone_steps=7, redone=3.5, saving=2.25)
COUNTED = Goodput(
    NOW,
    Doing.TRAINING,
    {Part.KEPT: 80.0, Part.REDONE: 10.0, Part.WAITING_FOR_PODS: 10.0, Part.UNKNOWN: 5.5},
    kept_steps=90,
    redone_steps=12,
    told=SPENT,
    untold={Part.RESTARTING: 1.5, Part.UNKNOWN: 0.5},
    others={"newer": [1]},
)


def test_it_is_read_as_it_was_written() -> None:
    assert Goodput.from_json(COUNTED.to_json()) == COUNTED
    claimed = Goodput(NOW, Doing.STARTING, {Part.WAITING_FOR_PODS: 4.0}, untold={Part.WAITING_FOR_PODS: 3.0})
    assert Goodput.from_json(claimed.to_json()) == claimed


def test_what_people_read() -> None:
    shown = COUNTED.to_json()
    assert shown["percent"] == 80
    assert shown["seconds"] == {"kept": 80.0, "redone": 10.0, "waitingForPods": 10.0, "unknown": 5.5}
    assert shown["steps"] == {"kept": 90, "redone": 12}


def test_nothing_is_claimed_before_a_supervisor_has_told_of_training() -> None:
    waits = Goodput(NOW, Doing.STARTING, {Part.STARTING: 7.0, Part.UNKNOWN: 100.0})
    assert (waits.ratio, waits.percent) == (None, None)
    assert "percent" not in waits.to_json()
    assert Goodput(NOW, Doing.TRAINING, {}, told=SPENT).percent is None


def test_percent_is_never_rounded_up() -> None:
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 999.0, Part.SAVING: 1.0}, told=SPENT).percent == 99
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 1.0}, told=SPENT).percent == 100
    # 0.07 and 0.93 add up to a little more than 1 for a computer
    assert Goodput(NOW, Doing.TRAINING, {Part.KEPT: 0.93, Part.SAVING: 0.07}, told=SPENT).percent == 93


@pytest.mark.parametrize(
    "fields",
    [
        None,
        "much",
        [],
        {},
        {"percent": 93, "seconds": {"kept": 3}},
        {"counted": "until now"},
        {"counted": {"until": "yesterday", "doing": "training"}},
        {"counted": {"until": "2026-11-21T10:00:00", "doing": "training"}},
        {"counted": {"until": "2026-11-21T10:00:00Z", "doing": "dancing"}},
        {"counted": {"until": 5, "doing": "training"}},
    ],
)
def test_what_cannot_be_counted_on_from_is_begun_anew(fields: Any) -> None:
    assert Goodput.from_json(fields) is None


def test_what_is_no_number_counts_as_nothing() -> None:
    counted = {"until": "2026-11-21T10:00:00Z", "doing": "training", "attempt": "x", "kept": -4, "keptSteps": 1.5}
    odd = {"seconds": {"kept": "long", "redone": float("nan"), "saving": True}, "steps": 5, "counted": counted}
    assert Goodput.from_json(odd) == Goodput(NOW, Doing.TRAINING, dict.fromkeys(list(Part)[:3], 0.0))
