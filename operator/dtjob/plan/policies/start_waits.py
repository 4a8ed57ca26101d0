"""Start waits: what the chief says it waits for before its first step, such as another job's checkpoint directory."""

from __future__ import annotations

from dtjob.plan.situation import Situation


def why_the_start_waits(situation: Situation) -> str:
    """What the chief's training process waits for while it starts (docs/contract.md: `message`); empty if nothing."""
    chief = situation.chief
    report = situation.children.reports.get(chief.task.id, {})
    if report.get("state") != "starting" or report.get("attempt", chief.attempt) != chief.attempt:
        return ""
    message = report.get("message")
    return f"{chief.task.id} says: {message}" if isinstance(message, str) and message else ""
