# SPDX-License-Identifier: Apache-2.0
"""Incidents: failures that belong together, the budget of restarts that they use up, and the backoff."""

from datetime import datetime, timedelta

from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.status.block import whole
from dtjob.api.status.internal import Incident
from dtjob.api.status.status import Status
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.record.status import running_since

LONG_RUN = timedelta(minutes=10)
"""A run of this length, twice the longest wait by default, ends the restarts in a row, as the kubelet does."""

WINDOW = timedelta(seconds=40)
"""What shows within this time of an incident's start may be its cause: a cut-off peer is noticed after up to 35 s."""

A_WHILE = WINDOW
"""When all tasks have run again for so long, the incident has ended."""


def long_run(backoff: Backoff) -> timedelta:
    """How long a job must run after a restart, so that the next restart is the first in a row again."""
    return max(LONG_RUN, timedelta(seconds=2 * backoff.max_seconds))


def ran_for_long(status: Status, backoff: Backoff, now: datetime) -> bool:
    """Whether the job has run long enough since its latest incident to end the restarts in a row. Time in which it
    waited does not count, nor that in which something that training needs did not run."""
    incident, since = status.internal.incident, running_since(status.conditions)
    return incident is not None and since is not None and now - max(since, incident.not_before) >= long_run(backoff)


def restarts_in_a_row(status: Status, backoff: Backoff, now: datetime) -> int:
    """How many restarts followed one another without a newer checkpoint or a long run. 0 if either came since."""
    incident = status.internal.incident
    if incident is None or status.checkpoint_step > incident.checkpoint_step or ran_for_long(status, backoff, now):
        return 0
    return incident.in_a_row


def wait_before(in_a_row: int, backoff: Backoff) -> timedelta:
    """The backoff before restart number `in_a_row`: none before the first, then doubling from initialSeconds to
    maxSeconds."""
    if in_a_row <= 1:
        return timedelta(0)
    doublings = min(in_a_row - 2, 20)
    return timedelta(seconds=min(backoff.initial_seconds * 2**doublings, backoff.max_seconds))


def is_due(incident: Incident | None, now: datetime) -> bool:
    """Whether the backoff before the next start is over."""
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
    """Whether the status differs from the written one only in the time at which its incident ends."""
    incident, before = status.internal.incident, written.internal.incident
    if incident is None or before is None:
        return False
    return status.remembering(incident=incident.but(ends_at=before.ends_at)) == written


def _has_saved_since(incident: Incident, status: Status, running: datetime | None) -> bool:
    """Whether a checkpoint was saved after training resumed. `running`: since when all that training needs runs. A
    checkpoint from before the failure may be reported after it, so the chief must have restored one since."""
    restored = status.restored
    if restored is not None and restored.time > incident.started_at:
        return status.checkpoint_step > restored.step
    never_stopped = running is not None and running <= incident.started_at
    return never_stopped and status.checkpoint_step > incident.checkpoint_step


def next_incident(status: Status, first: Failure, backoff: Backoff, now: datetime) -> Incident:
    """The incident that the failure `first`, to which the rules were applied, begins now.

    A newer checkpoint than at the last refill refills the budget. That ends the restarts in a row, and so does a long
    run since the last restart.
    """
    previous = status.internal.incident
    charged = uncharged = 0
    refilled_at = status.checkpoint_step
    if previous is not None and status.checkpoint_step <= previous.checkpoint_step:
        charged, refilled_at = previous.charged, previous.checkpoint_step
        if not ran_for_long(status, backoff, now):
            uncharged = previous.uncharged
    in_a_row = restarts_in_a_row(status, backoff, now) + 1
    counted = previous.counted if previous is not None else 0
    started_at = whole(now)  # as the status will hold it: now and after a restart of the operator alike
    return Incident(
        started_at=started_at,
        cause=first.cause.value,
        not_before=started_at + wait_before(in_a_row, backoff),
        charged=charged + first.charged,
        counted=counted + first.charged,
        uncharged=uncharged + (not first.charged),
        in_a_row=in_a_row,
        checkpoint_step=refilled_at,
        attempts=status.internal.attempts,
        action=first.of_a_rule,
    )


def with_another_failure(incident: Incident, more: Failure, charges: int = 1) -> Incident:
    """The incident with one more failure in it, to which the rules were applied. A stronger cause takes over.

    If the new cause is not charged, the charge is given back, and those of earlier incidents until `charges` are. If
    only the new cause is charged, as rules can say, the incident is charged now.
    """
    was = Cause.known(incident.cause)
    # A word that is no cause, as of a status that somebody edited, stays.
    if was is None or more.cause.precedence >= was.precedence:
        return incident
    moved = 0
    if counts(incident) and not more.charged:
        moved = -min(charges, incident.charged)
    elif not counts(incident) and more.charged:
        moved = 1
    return incident.but(
        cause=more.cause.value,
        charged=incident.charged + moved,
        counted=max(0, incident.counted + moved),
        uncharged=max(0, incident.uncharged - moved),
        action=more.of_a_rule,
        errors=None,
        mistake=None,
    )


def restarts(status: Status, now: datetime) -> bool:
    """Whether the job is restarting: a failure came since it began, or since it continued after a suspension."""
    incident = status.internal.incident
    if incident is None or status.active is None or status.active.since is None:
        return incident is not None
    return incident.started_at >= status.active.since or not is_due(incident, now)


def counts(incident: Incident) -> bool:
    """Whether the incident counts against the limit of restarts: as the rule says that decided about it, or else its
    cause."""
    if incident.action is not None:
        return incident.action == RuleAction.RESTART
    known = Cause.known(incident.cause)
    return known is not None and known.charged


def belongs(incident: Incident, task_id: str, attempt: int, now: datetime) -> bool:
    """Whether a failure of this attempt, observed at `now`, belongs to the incident. It does if the incident has not
    ended, and the pod was there when it began. A later attempt begins an incident of its own: else a pod that fails at
    each start would be free."""
    # No pod's time is asked: that is the API server's clock, and ours may differ.
    return attempt <= incident.attempts.of(task_id) and not is_over(incident, now)


def is_over(incident: Incident, now: datetime) -> bool:
    """Whether the incident has ended."""
    return incident.ends_at is not None and now >= incident.ends_at


def shows_its_cause(incident: Incident, now: datetime) -> bool:
    """Whether what fails now may still be the cause of the incident."""
    return now - incident.started_at <= WINDOW and not is_over(incident, now)
