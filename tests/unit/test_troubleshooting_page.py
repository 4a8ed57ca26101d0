# SPDX-License-Identifier: Apache-2.0
"""docs/operate/troubleshooting.md has each reason of an event, and of a phase as far as the code names it."""

import re
from pathlib import Path

import pytest

from dtjob.controller.pace.status_delay import MOST_FIRST_SECONDS
from dtjob.plan.record.failure import Cause
from tools.reference.conditions import CONDITIONS, REASONS_OF_PHASES
from tools.reference.events import EVENTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operate" / "troubleshooting.md").read_text()
HARMLESS = {"AllTasksRunning", "Completed", "Restarting"}
"""Reasons of phases with which nothing is wrong, or of which nothing is known."""


def named(section: str) -> set[str]:
    """What the first cells of a section's table have in code spans."""
    rows = re.findall(r"^\| ([^|]*)", PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0], re.M)
    return {span for cell in rows for span in re.findall(r"`(\w+)`", cell)}


def test_each_event_has_its_row() -> None:
    """`test_reasons.py` compares the table of events with the code."""
    assert named("An event") == set(EVENTS)


def test_each_reason_of_a_phase_has_its_row() -> None:
    """`test_reasons.py` compares the table of reasons with the code."""
    wanted = {reason for reasons in REASONS_OF_PHASES.values() for reason in reasons}
    assert named("A phase and its reason") == wanted - HARMLESS - set(Cause)


def test_each_condition_has_its_row() -> None:
    rows = named("A condition")
    assert rows - set(CONDITIONS) <= {"CheckpointsNotKept", "StatusUnreachable", "InvalidSpec"}
    assert set(CONDITIONS) <= rows


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_its_row(cause: Cause) -> None:
    assert cause.value in named("A cause")


def test_a_first_status_is_not_missed_before_it_may_be_there() -> None:
    assert f"no phase, for longer than {MOST_FIRST_SECONDS:.0f} s" in PAGE
    watching = " ".join((ROOT / "docs" / "jobs" / "watching.md").read_text().split())
    assert f"PHASE may stay empty for {MOST_FIRST_SECONDS:.0f} s" in watching
