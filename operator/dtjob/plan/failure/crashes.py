# SPDX-License-Identifier: Apache-2.0
"""Crashes: training processes that a signal ended, and that their supervisors started again in the same pods.

No pod shows them. The chief's supervisor tells of those of all its group, and each is counted and told once.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.status.internal import Crashes
from dtjob.api.status.status import Status
from dtjob.plan.failure.decisions import trains_without
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.incidents import add_incident, begun, goes_on_without
from dtjob.plan.record.status import count_restart
from dtjob.plan.seen.situation import Draft

CRASHED = "Crashed"
"""The reason of the event."""
OUT_OF_MEMORY = "out of memory"
"""What a supervisor adds to a signal that the kernel sent for want of memory."""
MOST_AT_ONCE = 100
"""The most crashes that one look counts. A chief may report any number, and all users share the operator's metrics."""

LONGEST_LOOK = timedelta(minutes=1)
"""A crash is seen within this time. An earlier time of it is by a clock that is not right."""


def note_crashes(draft: Draft) -> None:
    """Count the crashes that the chief tells of and that were not counted yet, and tell of them."""
    situation = draft.situation
    report = situation.chief_report
    reported, status = report.get("crashes", {}), situation.status
    attempt = situation.chief.attempt
    known = status.internal.crashes
    before = known.count if known is not None and known.attempt == attempt else 0
    new = min(reported.get("count", 0) - before, MOST_AT_ONCE)
    if new <= 0:
        return
    cause = Cause.OOM_KILLED if OUT_OF_MEMORY in reported.get("signal", "") else Cause.SIGNAL
    status = count_restart(status, cause, new)
    step, others = reported.get("step"), f", and {new - 1} more before it" if new > 1 else ""
    when = "" if step is None else f" after step {step}"
    killed = f"was killed ({reported.get('signal', 'by a signal')}){when}{others}"
    task, message = reported.get("task", "a task"), f"{killed}; its program was started again in place"
    if step is None and status.progress:
        step = status.progress.step
    began = _began(report, status, draft.now)
    status = add_incident(status, begun(status.restarts.total, began, task, cause.value, message, step), draft.now)
    crashed = [view.task for view in situation.training if view.task.id == task]
    if crashed and trains_without(situation.group_job, crashed):
        status = goes_on_without(status)
    draft.status = status.remembering(crashes=Crashes(attempt=attempt, count=reported["count"]))
    draft.add_event("Warning", CRASHED, f"{task} {message}")


def _began(report: Mapping[str, Any], status: Status, now: datetime) -> datetime:
    """When the crash was: the chief restarted its own process then, by its clock. Now if that time cannot be right."""
    told = report.get("lastRestart", {}).get("time")
    after = max([now - LONGEST_LOOK, *(one.time for one in status.incidents[-1:])])
    return restarted if told and after < (restarted := times.parse(told)) <= now else now
