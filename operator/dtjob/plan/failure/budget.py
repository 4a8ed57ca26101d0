"""Incidents: failures that belong together, the budget of restarts that they use up, and the backoff."""

from __future__ import annotations

from datetime import datetime, timedelta

from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.block import whole
from dtjob.api.status.incident import Incident
from dtjob.api.status.status import Status
from dtjob.plan.record.conditions import running_since
from dtjob.plan.record.failure import Cause
from dtjob.plan.record.incident import WINDOW, counts, is_charged, is_over

LONG_RUN = timedelta(minutes=10)
"""A run of this length, twice the longest wait by default, ends a row of restarts, as the kubelet ends a crash loop."""

A_WHILE = WINDOW
"""When all tasks have run again for so long, the incident has ended."""


def long_run(backoff: Backoff) -> timedelta:
    """How long a job has to run after a restart for the next one to be the first of a row."""
    return max(LONG_RUN, timedelta(seconds=2 * backoff.max_seconds))


def ran_for_long(incident: Incident, running_since: datetime | None, backoff: Backoff, now: datetime) -> bool:
    """Whether the job has run long enough since the incident for its row of restarts to end; all that training needs
    has run since `running_since` (None: something did not). Time in which the job waited is no run."""
    return running_since is not None and now - max(running_since, incident.not_before) >= long_run(backoff)


def wait_before(in_a_row: int, backoff: Backoff) -> timedelta:
    """The wait before the `in_a_row`-th restart: none before the first, then doubling from initialSeconds to
    maxSeconds."""
    if in_a_row <= 1:
        return timedelta(0)
    doublings = min(in_a_row - 2, 20)
    return timedelta(seconds=min(backoff.initial_seconds * 2**doublings, backoff.max_seconds))


def is_due(incident: Incident | None, now: datetime) -> bool:
    """Whether the wait before the next start is over."""
    return incident is None or now >= incident.not_before


def note_end(status: Status, now: datetime) -> Status:
    """The status with the time at which its incident ends, where that shows.

    The incident ends when training has resumed and saved a newer checkpoint. It also ends when all tasks have run again
    for a while. The first moment at which all run decides: later failures do not make the incident longer.
    """
    incident = status.internal.incident
    if incident is None or is_over(incident, now):
        return status
    since = running_since(status.conditions)
    if _has_saved_since(incident, status, since):
        return status.remembering(incident=incident.but(ends_at=whole(now)))
    if incident.ends_at is not None or since is None:
        return status
    return status.remembering(incident=incident.but(ends_at=whole(max(since, incident.not_before) + A_WHILE)))


def only_the_end_differs(status: Status, written: Status) -> bool:
    """Whether the status says no more than the one that is written, but for when its incident ends."""
    incident, before = status.internal.incident, written.internal.incident
    if incident is None or before is None:
        return False
    return status.remembering(incident=incident.but(ends_at=before.ends_at)) == written


def _has_saved_since(incident: Incident, status: Status, running: datetime | None) -> bool:
    """Whether a checkpoint was saved after training resumed. `running` is since when all that training needs runs. A
    checkpoint of the time before the failure may be told of after it, so the chief has to have restored one since."""
    restored = status.restored
    if restored is not None and restored.time > incident.started_at:
        return status.checkpoint_step > restored.step
    never_stopped = running is not None and running <= incident.started_at
    return never_stopped and status.checkpoint_step > incident.checkpoint_step


def next_incident(
    previous: Incident | None,
    cause: Cause,
    checkpoint_step: int,
    attempts: Attempts,
    backoff: Backoff,
    now: datetime,
    running_since: datetime | None,
    action: RuleAction | None = None,
) -> Incident:
    """The incident that `cause` begins now, with the tasks at these `attempts`; all that training needs has run since
    `running_since` (None: something did not).

    A newer checkpoint than the last refill's refills the budget. A row of restarts ends with that, or with a long run
    since its last one; time in which the job waited, or some pod of it could not start, is no run. `action` is what a
    rule says to do about it; where none does, the cause says what is charged.
    """
    charged = uncharged = in_a_row = 0
    refilled_at = checkpoint_step
    if previous is not None and checkpoint_step <= previous.checkpoint_step:
        charged, refilled_at = previous.charged, previous.checkpoint_step
        if not ran_for_long(previous, running_since, backoff, now):
            uncharged, in_a_row = previous.uncharged, previous.in_a_row
    in_a_row += 1
    is_one = is_charged(cause, action)
    counted = previous.counted if previous is not None else 0
    started_at = whole(now)  # as the status will hold it: now and after a restart of the operator alike
    return Incident(
        started_at=started_at,
        cause=cause.value,
        not_before=started_at + wait_before(in_a_row, backoff),
        charged=charged + (1 if is_one else 0),
        counted=counted + (1 if is_one else 0),
        uncharged=uncharged + (0 if is_one else 1),
        in_a_row=in_a_row,
        checkpoint_step=refilled_at,
        attempts=attempts,
        action=action.value if action else None,
    )


def with_another_failure(
    incident: Incident, cause: Cause, action: RuleAction | None = None, charges: int = 1
) -> Incident:
    """The incident with one more failure in it, about which a rule may say `action`. A stronger cause takes over: what
    is not charged gives the charge back, and those of as many incidents before it as make `charges` with it; and what
    is charged where the incident was not, as only rules say, is charged now."""
    was = Cause.known(incident.cause)
    if was is None or cause.precedence >= was.precedence:  # a newer operator's own word stands
        return incident
    moved = 0
    if counts(incident) and not is_charged(cause, action):
        moved = -min(charges, incident.charged)
    elif not counts(incident) and is_charged(cause, action):
        moved = 1
    return incident.but(
        cause=cause.value,
        charged=incident.charged + moved,
        counted=max(0, incident.counted + moved),
        uncharged=max(0, incident.uncharged - moved),
        action=action.value if action else None,
        errors=None,
    )


def restarts(status: Status, now: datetime) -> bool:
    """Whether the job is being restarted: over a failure since it began, or went on after a suspension."""
    incident = status.internal.incident
    if incident is None or status.active is None or status.active.since is None:
        return incident is not None
    return incident.started_at >= status.active.since or not is_due(incident, now)
