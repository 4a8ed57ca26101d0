# SPDX-License-Identifier: Apache-2.0
"""Deadlines: how long a job may be active, and how long its tasks may take until all of them run.

They are the job's own, and end it whether or not anything happens to it.
"""

from datetime import datetime, timedelta

from dtjob.api.counted import counted
from dtjob.api.phase import Phase
from dtjob.api.status.status import Status
from dtjob.plan.failure.decisions import GiveUp
from dtjob.plan.seen.situation import Situation

DEADLINE_EXCEEDED = "DeadlineExceeded"
"""A Job's reason."""
START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"


def overdue(situation: Situation) -> GiveUp | None:
    """The end of the job over one of its deadlines; None if neither is over."""
    spec, now = situation.group_job.spec, situation.now
    active_until, start_until = deadlines(situation)
    if active_until is not None and now >= active_until:
        absent = _absent(situation)
        more = f"; at the end {absent}" if absent else ""
        field = f"activeDeadlineSeconds ({spec.active_deadline_seconds})"
        return GiveUp(None, f"the job was active for longer than {field}{more}", DEADLINE_EXCEEDED)
    if start_until is not None and now >= start_until and (absent := _absent(situation)):
        field = f"startDeadlineSeconds ({spec.start_deadline_seconds})"
        return GiveUp(None, f"not all tasks ran within {field}: {absent}", START_DEADLINE_EXCEEDED)
    return None


def ended_by_deadline(status: Status) -> bool:
    """Whether a deadline has ended the job."""
    return status.phase is Phase.FAILED and status.reason in (DEADLINE_EXCEEDED, START_DEADLINE_EXCEEDED)


def deadlines(situation: Situation) -> tuple[datetime | None, datetime | None]:
    """When the job may be active no longer, and when its tasks are to run at the latest. None: no deadline."""
    spec, active = situation.group_job.spec, situation.status.active
    active_until = start_until = None
    if active is None or active.since is None:
        return None, None
    if spec.active_deadline_seconds is not None:
        left = timedelta(seconds=spec.active_deadline_seconds - active.seconds)
        active_until = active.since + max(left, timedelta(0))
    if spec.start_deadline_seconds is not None and active.all_ran_time is None:
        start_until = active.since + timedelta(seconds=spec.start_deadline_seconds)
    return active_until, start_until


def _absent(situation: Situation) -> str:
    """How many of the tasks that train do not run, and the message of the phase, which says why. Empty if all are
    up."""
    absent, written = sum(not view.up for view in situation.training), situation.written
    if not absent:
        return ""
    why = f": {written.message}" if written.message and written.phase in (Phase.PENDING, Phase.RESTARTING) else ""
    return f"{absent} of {counted(len(situation.training), 'task')} did not run{why}"
