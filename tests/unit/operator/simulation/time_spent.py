"""What must hold of the time that a job's status says it spent, whatever its supervisors tell."""

from __future__ import annotations

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
    passed = times.parse(after["counted"]["until"]) - times.parse(before["counted"]["until"])
    wanted = 0.0 if is_suspended(old) and is_suspended(new) else passed.total_seconds()
    counted = sum(after["seconds"].values()) - sum(before["seconds"].values())
    slack = passed.total_seconds() if is_suspended(old) else 0.0  # it may have gone on just now
    assert wanted - slack - ROUNDING <= counted <= wanted + ROUNDING, f"{counted} s counted in {passed}"
    for name in ("redone", "saving"):
        assert after["seconds"].get(name, 0) >= before["seconds"].get(name, 0) - ROUNDING, f"less time {name}"
    assert after["steps"]["redone"] >= before["steps"]["redone"]
    assert after.get("percent") is None or 0 <= after["percent"] <= 100
