"""Start waits: what the chief says it waits for before its first step, such as another job's checkpoint directory."""

from __future__ import annotations

from dtjob.plan.situation import Situation


def why_the_start_waits(situation: Situation) -> str:
    """What the chief's training process waits for while it starts (docs/contract.md: `message`); empty if nothing."""
    chief = situation.chief.task.id
    report = situation.reports.get(chief, {})
    message = report.get("message")
    waits = report.get("state") == "starting" and isinstance(message, str) and message
    return f"{chief} says: {message}" if waits else ""
