# SPDX-License-Identifier: Apache-2.0
"""What must hold of the time that a job's status says it spent, whatever its supervisors tell."""

from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from tests.unit.operator.simulation.facts import is_suspended

ROUNDING = 0.05


def check_time_spent(old: dict[str, Any], new: dict[str, Any]) -> None:
    """From one status to the next as much is counted as time has passed, but for suspension; and what was re-done stays
    so."""
    before, after = old.get("goodput"), new.get("goodput")
    if not before:
        return
    assert after, "the time that was counted is forgotten"
    passed = max(_until(new) - _until(old), timedelta(0))
    wanted = 0.0 if is_suspended(old) and is_suspended(new) else passed.total_seconds()
    spent = [_seconds(one) for one in (before, after)]
    counted = sum(spent[1].values()) - sum(spent[0].values())
    slack = passed.total_seconds() if is_suspended(old) else 0.0  # it may have gone on just now
    assert wanted - slack - ROUNDING <= counted <= wanted + ROUNDING, f"{counted} s counted in {passed}"
    for name in ("redone", "saving"):
        assert spent[1].get(name, 0) >= spent[0].get(name, 0) - ROUNDING, f"less time {name}"
    redone = [one.get("steps", {}).get("redone", 0) for one in (before, after)]
    assert redone[1] >= redone[0]
    assert 0 <= after.get("percentage", 0) <= 100


def _until(status: dict[str, Any]) -> datetime:
    return times.parse(status["internal"]["goodput"]["until"])


def _seconds(goodput: dict[str, Any]) -> dict[str, float]:
    return {name: float(text) for name, text in goodput.get("seconds", {}).items()}
