"""docs/operate/troubleshooting.md has each reason of an event, and of a phase as far as the code names it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtjob.controller.patience import MOST_FIRST_SECONDS
from dtjob.plan.decisions import GiveUp
from dtjob.plan.failure import Cause
from dtjob.plan.policies.deadlines import DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operate" / "troubleshooting.md").read_text()
OPERATOR = ROOT / "operator"
REASON_AT = {"Event": 1, "Standing": 1, "Pause": 0, "GiveUp": 2, "set_phase": 2}
"""Who is given a reason, and as which argument."""
ONLY_KNOWN_LATER = {"event.reason", "late.reason", "decision.reason", "pause.reason", "_cause_word(status)"}
"""Passed on from one of these."""
HARMLESS = {"AllTasksRunning", "Completed"}
"""Reasons of phases with which nothing is wrong."""


def named(section: str) -> set[str]:
    """What the first cells of a section's table have in code spans."""
    rows = re.findall(r"^\| ([^|]*)", PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0], re.M)
    return {span for cell in rows for span in re.findall(r"`(\w+)`", cell)}


def reasons(*callers: str) -> Iterator[str]:
    """The reasons that the operator's code gives these."""
    for file in sorted((OPERATOR / "dtjob").rglob("*.py")):
        text = file.read_text()
        if not any(f"{caller}(" in text for caller in callers):
            continue
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in callers):
                continue
            at = REASON_AT[call.func.id]
            if len(call.args) <= at or any(isinstance(one, ast.Starred) for one in call.args[: at + 1]):
                continue
            said = ast.unparse(call.args[at])
            if said in ONLY_KNOWN_LATER or "first_failure" in said:
                continue
            module = importlib.import_module(".".join(file.relative_to(OPERATOR).with_suffix("").parts))
            yield str(eval(said, vars(module)))


def test_each_event_has_its_row() -> None:
    wanted = {*reasons("Event"), DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED}
    assert len(wanted) > 20
    assert named("An event") == wanted


def test_each_reason_of_a_phase_has_its_row() -> None:
    wanted = {*reasons("Standing", "Pause", "GiveUp", "set_phase"), GiveUp.reason}
    wanted |= {
        DEADLINE_EXCEEDED,
        START_DEADLINE_EXCEEDED,
        "NoPriorityClass",
        "NoWorkload",
        "InvalidSpec",
        "CannotCreate",
    }
    assert named("A phase and its reason") == wanted - HARMLESS


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_its_row(cause: Cause) -> None:
    assert cause.value in named("A cause")


def test_a_first_status_is_not_missed_before_it_may_be_there() -> None:
    assert f"no phase, for longer than {MOST_FIRST_SECONDS:.0f} s" in PAGE
    watching = " ".join((ROOT / "docs" / "jobs" / "watching.md").read_text().split())
    assert f"PHASE may stay empty for {MOST_FIRST_SECONDS:.0f} s" in watching
