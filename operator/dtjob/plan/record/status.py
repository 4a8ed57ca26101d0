# SPDX-License-Identifier: Apache-2.0
"""Changes of the status: phase, conditions, counts of restarts, and attempts. Which conditions a job has."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from dtjob.api.phase import ENDED, Phase
from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.status.block import LONGEST_MESSAGE, LONGEST_WORD, StatusBlock, cut, whole
from dtjob.api.status.condition import Condition, valid_reason
from dtjob.api.status.status import Status
from dtjob.objects.topology import Task

ACCEPTED, INVALID_SPEC = "Accepted", "InvalidSpec"
"""Reasons of SpecAccepted: a spec that could not be read can be, or cannot be read."""


def set_phase(status: Status, phase: Phase, reason: str, message: str, now: datetime) -> Status:
    """Set phase, reason and message, and with them the conditions: the phase's own holds, and no other phase's."""
    reason, message = cut(reason, LONGEST_WORD), cut(message, LONGEST_MESSAGE)
    held = CONDITION_OF.get(phase)
    for type_ in (RUNNING, RESTARTING, SUSPENDED, COMPLETE, FAILED):
        # Running says why it does not hold; so a phase without a condition can be told from it.
        if type_ in (held, RUNNING):
            words = (reason, message)
        elif type_ in (COMPLETE, FAILED) and held in (COMPLETE, FAILED):
            words = (reason, "")
        elif (old := condition(status.conditions, type_)) is not None:
            words = (reason, "") if old.holds else (old.reason, old.message)
        else:
            words = (NOT_SUSPENDED if type_ == SUSPENDED else NOT_FINISHED), ""
        status = set_condition(status, type_, type_ == held, *words, now, always=type_ in ALWAYS_THERE)
    return status.but(
        phase=phase,
        reason=reason,
        message=message,
        start_time=status.start_time or whole(now),
        completion_time=whole(now) if phase in ENDED else status.completion_time,
    )


def say_instead(status: Status, reason: str, message: str) -> Status:
    """Set the reason and the message of the phase to those of a condition that says why the job stands there."""
    return status.but(reason=cut(reason, LONGEST_WORD), message=cut(message, LONGEST_MESSAGE))


def set_condition(
    status: Status, type_: str, holds: bool | None, reason: str, message: str, now: datetime, *, always: bool = False
) -> Status:
    """Set one condition; `holds` None: nobody knows. One that never held is left out, but with `always`; one that did
    stays, as False.

    `lastTransitionTime` moves only when the status does, and `observedGeneration` is that of the job from which it
    follows (Kubernetes API conventions).
    """
    old = condition(status.conditions, type_)
    if old is None and not holds and not always:
        return status
    changes: dict[str, Any] = {
        "status": "Unknown" if holds is None else str(holds),
        "reason": valid_reason(reason),
        "message": cut(message, LONGEST_MESSAGE),
    }
    if status.observed_generation is not None:
        changes["observed_generation"] = status.observed_generation
    if old is None:
        made = Condition(type=type_, last_transition_time=whole(now), **changes)
        return status.but(conditions=(*status.conditions, made))
    if all(getattr(old, name) == value for name, value in changes.items()):
        return status
    if old.status != changes["status"]:
        changes["last_transition_time"] = whole(now)
    said = old.but(**changes)
    return status.but(conditions=tuple(said if one is old else one for one in status.conditions))


def refuse_spec(status: Status, generation: int, message: str, now: datetime) -> Status:
    """Say that the spec of this generation cannot be read. What the job has come to stays, and an end stays an end."""
    status = status.but(observed_generation=generation)
    if status.phase is None:
        status = set_phase(status, Phase.PENDING, INVALID_SPEC, message, now).but(start_time=status.start_time)
    status = set_condition(status, SPEC_ACCEPTED, False, INVALID_SPEC, message, now, always=True)
    return status if status.ended else say_instead(status, INVALID_SPEC, message)


def say_accepted(status: Status, now: datetime) -> Status:
    """Say that the spec can be read, of a job of which it could not."""
    said = condition(status.conditions, SPEC_ACCEPTED)
    return status if said is None or said.holds else set_condition(status, SPEC_ACCEPTED, True, ACCEPTED, "", now)


def confirm_phase(status: Status) -> Status:
    """Say of an ended job's conditions that they hold for the observed generation too."""
    ours, generation = (*ALWAYS_THERE, RESTARTING, CHECKPOINTS_KEPT), status.observed_generation
    confirmed = (one.but(observed_generation=generation) if one.type in ours else one for one in status.conditions)
    return status.but(conditions=tuple(confirmed))


def bump_attempts(status: Status, tasks: Iterable[Task], everyone: Iterable[Task]) -> Status:
    """Give each task its next attempt. `everyone` are all tasks of the job."""
    attempts = status.internal.attempts.bumped((task.id for task in tasks), (task.id for task in everyone))
    return status.remembering(attempts=attempts, all_created=False, made_before=status.internal.made)


def count_restart(status: Status, cause: str, number: int = 1, *, instead_of: str | None = None) -> Status:
    """Count so many restarts under their cause; `instead_of` is the cause under which they were counted before."""
    restarts, causes = status.restarts, dict(status.restarts.causes)
    if instead_of is not None:
        causes[instead_of] = causes.get(instead_of, 0) - number
    causes[str(cause)] = causes.get(cause, 0) + number
    total = restarts.total if instead_of else restarts.total + number
    causes = {name: count for name, count in causes.items() if count > 0}
    return status.but(restarts=restarts.but(total=total, causes=causes))


def ran_before(status: Status) -> bool:
    """Whether all tasks that train have run together since the job began, or went on after a suspension."""
    if status.active is not None:
        return status.active.all_ran_time is not None
    return status.first_step_time is not None or holds(status.conditions, RUNNING)


BLOCKED = "Blocked"
"""Something that the job needs cannot be made. Like the others here, this is no phase's."""
EVALUATION_GIVEN_UP = "EvaluationGivenUp"
"""What training saves last is not evaluated: of a job that goes on, since a rule ignores its evaluator's failure."""
CHECKPOINTS_KEPT = "CheckpointsKept"
"""Checkpoints outlive the pod that writes them; there from the start, where a job has checkpoints."""
SPEC_ACCEPTED = "SpecAccepted"
"""The operator can read the stored spec; there once it could not."""
QUOTA_RESERVED, ADMITTED = "QuotaReserved", "Admitted"
"""As the job's Workload has them, where it is in a queue of Kueue."""
QUEUE_IGNORED = "QueueNameIgnored"
"""The label that names a queue was set or changed while the job ran, and does nothing yet."""

RUNNING, RESTARTING, SUSPENDED, COMPLETE, FAILED = "Running", "Restarting", "Suspended", "Complete", "Failed"
CONDITION_OF = {
    Phase.FAILED: FAILED,
    Phase.SUCCEEDED: COMPLETE,
    Phase.SUSPENDED: SUSPENDED,
    Phase.RESTARTING: RESTARTING,
    Phase.RUNNING: RUNNING,
}
"""The condition that holds in each phase; in none of them: Pending. A Job of batch/v1 also has Complete and
Suspended."""
ALWAYS_THERE = (RUNNING, SUSPENDED, COMPLETE, FAILED)
"""Conditions that a job has from its first status on."""
CANNOT_CREATE, CREATED = "CannotCreate", "Created"
"""Reasons of Blocked: some object is refused, or none is any more."""
NOT_FINISHED, NOT_SUSPENDED = "NotFinished", "NotSuspended"
"""Why a job is neither complete nor failed, and why it is not suspended."""


class PhaseStatus(NamedTuple):
    """What a job's phase is, and why: in one word, and in words."""

    phase: Phase
    reason: str
    message: str


def condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of this type, None if there is none."""
    return next((one for one in conditions if one.type == type_), None)


def holds(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether this condition holds."""
    return any(one.type == type_ and one.status == "True" for one in conditions)


def running_since(conditions: Iterable[Condition]) -> datetime | None:
    """Since when all that training needs has been running, None if something of it is not."""
    said = condition(conditions, RUNNING)
    return said.last_transition_time if said and said.holds else None


def stopped_running(conditions: Iterable[Condition], now: datetime) -> datetime | None:
    """Since when not all that training needs has been running, where something has failed of it: now, while nobody has
    said so. To be asked of a job that has run; None if nothing is said of it."""
    said = condition(conditions, RUNNING)
    if said is None:
        return None
    return now if said.holds else said.last_transition_time


Block = TypeVar("Block", bound=StatusBlock)


def after_set_back(status: Status, now: datetime) -> Status:
    """The status with its incident begun now, where it says that the incident begins later: the operator's clock was
    set back, and its backoff would last for as long as the clock was wrong.

    All times of its incident, and those of its period of activity and of its restored checkpoint that are later than
    now, become earlier by the same duration: their order stays.
    """
    incident = status.internal.incident
    if incident is None or incident.started_at <= now:
        return status
    ahead = incident.started_at - whole(now)
    errors = incident.errors and _earlier(incident.errors, ahead, now)
    moved = _earlier(incident, ahead, now).but(errors=errors)
    active = status.active and _earlier(status.active, ahead, now)
    restored = status.restored and _earlier(status.restored, ahead, now)
    return status.but(active=active, restored=restored).remembering(incident=moved)


def with_bounded_wait(status: Status, backoff: Backoff) -> Status:
    """The status whose incident waits for no longer than `backoff` allows. Somebody may have forged a longer wait, or
    lowered maxSeconds since."""
    incident = status.internal.incident
    if incident is None:
        return status
    latest = incident.started_at + timedelta(seconds=backoff.max_seconds)
    if incident.not_before <= latest:
        return status
    return status.remembering(incident=incident.but(not_before=latest))


def _earlier(block: Block, ahead: timedelta, now: datetime) -> Block:
    times: dict[str, Any] = {name: getattr(block, name) for name in type(block).model_fields}
    return block.but(
        **{name: time - ahead for name, time in times.items() if isinstance(time, datetime) and time > now}
    )
