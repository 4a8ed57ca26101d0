"""Restored: says from which step training really went on, once the chief has told it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dtjob import times
from dtjob.objects.keeping import keeping
from dtjob.plan.actions import Event
from dtjob.plan.report_types import of_the_contract
from dtjob.plan.situation import Situation

RESUMED, STARTED_OVER = "Resumed", "StartedOver"
"""Reasons of the events."""


def note_restored(situation: Situation) -> tuple[Situation, list[Event]]:
    """Note what the chief's newest training process has restored, and tell it where that is news.

    What it did not find is no checkpoint any more, whatever was reported earlier.
    """
    report = of_the_contract(situation.reports.get(situation.chief.task.id, {}))
    step, start = report.get("restoredStep"), _start(report)
    status = situation.status
    first = start == {"attempt": 0, "incarnation": 0}
    seen = start.items() <= status.restored.items() or (first and not status.restored and step == 0)
    if step is None or seen:
        return situation, []
    restored = {"step": step, **start, "time": times.rfc3339(situation.now)}
    before = situation.written.progress
    nothing_lost = not step and before.checkpoint_step < 0 and not before.training.get("step", 0)
    told = [] if nothing_lost else [_event(situation, step, before.checkpoint_step)]
    newest = report.get("checkpoint", {})
    progress = replace(status.progress, checkpoint=newest if "step" in newest else {})
    return situation.with_status(replace(status, restored=restored, progress=progress)), told


def _start(report: dict[str, Any]) -> dict[str, int]:
    """Which start of the training process the report speaks of."""
    return {name: report.get(name, 0) for name in ("attempt", "incarnation")}


def _event(situation: Situation, step: int, newest: int) -> Event:
    """`newest` is the checkpoint from which it should have gone on."""
    lost = f", and not from step {newest}, whose checkpoint was not there or could not be read" if newest > step else ""
    if step:
        kind = "Warning" if lost else "Normal"
        return Event(kind, RESUMED, f"Training went on from the checkpoint at step {step}{lost}")
    kept = keeping(situation.job, situation.defaults)
    if kept is None:
        return Event("Normal", STARTED_OVER, "Training began again at step 0; spec.checkpoint would have it go on")
    return Event("Warning", STARTED_OVER, f"Training began again at step 0{lost or ': there was no checkpoint yet'}")
