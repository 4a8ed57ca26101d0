# SPDX-License-Identifier: Apache-2.0
"""Deadlines: how long a job may be active, and how long its tasks may take until all of them run.

They are the job's own, and end it whether or not anything happens to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dtjob.api.counted import counted
from dtjob.api.phase import Phase
from dtjob.api.status.status import Status
from dtjob.plan.seen.situation import Situation

DEADLINE_EXCEEDED = "DeadlineExceeded"
"""A Job's reason."""
START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"


@dataclass(frozen=True)
class Overdue:
    """A deadline is over: the job fails with this reason, in one word and in words."""

    reason: str
    message: str


def overdue(situation: Situation) -> Overdue | None:
    """The deadline that is over, None if none is."""
    spec, now = situation.group_job.spec, situation.now
    active_until, start_until = deadlines(situation)
    if active_until is not None and now >= active_until:
        absent = _absent(situation)
        more = f"; at the end {absent}" if absent else ""
        field = f"activeDeadlineSeconds ({spec.active_deadline_seconds})"
        return Overdue(DEADLINE_EXCEEDED, f"the job was active for longer than {field}{more}")
    if start_until is not None and now >= start_until and (absent := _absent(situation)):
        field = f"startDeadlineSeconds ({spec.start_deadline_seconds})"
        return Overdue(START_DEADLINE_EXCEEDED, f"not all tasks ran within {field}: {absent}")
    return None


def ended_by_deadline(status: Status) -> bool:
    """Whether a deadline has ended the job."""
    return status.phase is Phase.FAILED and status.reason in (DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED)


def deadlines(situation: Situation) -> tuple[datetime | None, datetime | None]:
    """When the job may be active no longer, and when its tasks are to run at the latest. None: no deadline."""
    return _active_until(situation), _start_until(situation)


def note_all_ran(situation: Situation, status: Status) -> Status:
    """The status, with the moment at which all tasks that train first ran together."""
    if status.active is None or status.phase is not Phase.RUNNING:
        return status
    return status.but(active=status.active.all_run(situation.now))


def _absent(situation: Situation) -> str:
    """How many of the tasks that train do not run, and the message of the phase, which says why. Empty if all are
    up."""
    absent, written = sum(not view.up for view in situation.training), situation.written
    if not absent:
        return ""
    why = f": {written.message}" if written.message and written.phase in (Phase.PENDING, Phase.RESTARTING) else ""
    return f"{absent} of {counted(len(situation.training), 'task')} did not run{why}"


def _active_until(situation: Situation) -> datetime | None:
    seconds, active = situation.group_job.spec.active_deadline_seconds, situation.status.active
    if seconds is None or active is None or active.since is None:
        return None
    return active.since + max(timedelta(seconds=seconds - active.seconds), timedelta(0))


def _start_until(situation: Situation) -> datetime | None:
    seconds, active = situation.group_job.spec.start_deadline_seconds, situation.status.active
    if seconds is None or active is None or active.since is None or active.all_ran_time is not None:
        return None
    return active.since + timedelta(seconds=seconds)
