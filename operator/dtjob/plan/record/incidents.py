# SPDX-License-Identifier: Apache-2.0
"""`status.incidents`: the interruptions of training as users read them, the newest last.

A restart adds one in the plan that counts it, so both are written ahead together. Only the newest is open: it waits for
what training resumes from, and for the first step that is new.
"""

from datetime import datetime
from typing import Any

from dtjob.api.status.block import LONGEST_SENTENCE, cut, whole
from dtjob.api.status.restarts import MOST_INCIDENTS, PastIncident
from dtjob.api.status.status import Status
from dtjob.plan.record.failure import Failure
from dtjob.plan.record.status import running_since


def begun(number: int, began: datetime, task: str, reason: str, message: str, step: int | None) -> PastIncident:
    """An incident of which nothing is known but its beginning. `step` is the last one before it, if known."""
    said = cut(message, LONGEST_SENTENCE)
    return PastIncident(number=number, time=whole(began), task=task, reason=reason, message=said, from_step=step)


def begun_by(first: Failure, status: Status, number: int, now: datetime) -> PastIncident:
    """The incident that this failure begins. Its supervisor knows the last step better than the status."""
    known = first.end.restored if first.end.step is None else first.end.step
    step = _reported_step(status) if known is None else known
    return begun(number, now, first.task.id, first.cause.value, first.message, step)


def add_incident(status: Status, added: PastIncident, now: datetime) -> Status:
    """The status with one more incident. Closes the one before it."""
    status = close_incident(status, now)
    return status.but(incidents=(*status.incidents, added)[-MOST_INCIDENTS:])


def correct_incident(status: Status, what: PastIncident, *, was: str = "", restarts: int = 1) -> Status:
    """The status with another cause of the incident of this number, which shows only now.

    - was: the reason until now
    - restarts: how many incidents have this cause. Those before the incident are the newest with the reason `was`.
    """
    left, found = restarts, []
    for one in reversed(status.incidents):
        if left and (one.number == what.number or (one.number < what.number and one.reason == was)):
            left -= 1
            one = one.but(task=what.task, reason=what.reason, message=what.message)
        found.append(one)
    return status.but(incidents=tuple(reversed(found)))


def goes_on_without(status: Status) -> Status:
    """The status with its open incident closed: training did not wait for the task that failed."""
    newest = _open(status)
    return status if newest is None else _changed(status, newest, to_step=newest.from_step, seconds_lost=0)


def reopen_incident(status: Status, number: int) -> Status:
    """The status with the incident of this number open again, if that is the newest: more of it has failed."""
    newest = status.incidents[-1] if status.incidents else None
    if newest is None or newest.number != number:
        return status
    return _changed(status, newest, to_step=None, seconds_lost=None)


def note_resumed(status: Status, step: int) -> Status:
    """The status with its open incident resumed from this step. A checkpoint shows that training had come so far."""
    newest = _open(status)
    if newest is None:
        return status
    reached = None if newest.from_step is None else max(newest.from_step, step)
    return _changed(status, newest, to_step=step, from_step=reached)


def note_recovery(status: Status, now: datetime) -> Status:
    """The status with its open incident closed, if training has passed the step that it had reached.

    If no step is known, all tasks must run again.
    """
    newest = _open(status)
    if newest is None:
        return status
    if newest.to_step is not None:
        passed = status.step > max(newest.from_step or 0, newest.to_step)
        return close_incident(status, now) if passed else status
    since = running_since(status.conditions)
    runs_again = _reported_step(status) is None and since is not None and since > newest.time
    return close_incident(status, since) if since is not None and runs_again else status


def close_incident(status: Status, now: datetime) -> Status:
    """The status with its open incident over: training has recovered, was interrupted again, suspended or ended.

    If no step is known and all tasks run, nobody knows when training recovered.
    """
    newest = _open(status)
    if newest is None:
        return status
    of_no_step = newest.from_step is None and newest.to_step is None
    if of_no_step and (since := running_since(status.conditions)) is not None and since <= newest.time:
        return status
    return _changed(status, newest, seconds_lost=max(0, round((now - newest.time).total_seconds())))


def _reported_step(status: Status) -> int | None:
    """The step that the chief reported last, None before its first report."""
    return status.progress.step if status.progress else None


def _open(status: Status) -> PastIncident | None:
    """The newest incident, if it is not closed."""
    newest = status.incidents[-1] if status.incidents else None
    return newest if newest is not None and newest.seconds_lost is None else None


def _changed(status: Status, newest: PastIncident, **changes: Any) -> Status:
    return status.but(incidents=(*status.incidents[:-1], newest.but(**changes)))
