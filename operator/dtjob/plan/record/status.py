# SPDX-License-Identifier: Apache-2.0
"""Changes of the status: phase, conditions, counts of restarts, and attempts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.block import LONGEST_MESSAGE, LONGEST_WORD, cut, whole
from dtjob.api.status.status import Status
from dtjob.objects.topology import Task
from dtjob.plan.record.conditions import (
    ALWAYS_THERE,
    CHECKPOINTS_KEPT,
    RESTARTING,
    RUNNING,
    SPEC_ACCEPTED,
    PhaseStatus,
    condition,
    holds,
    in_phase,
    with_condition,
)

ACCEPTED, INVALID_SPEC = "Accepted", "InvalidSpec"
"""Reasons of SpecAccepted: a spec that could not be read can be, or cannot be read."""


def set_phase(status: Status, phase: Phase, reason: str, message: str, now: datetime) -> Status:
    """Set phase, reason and message, and with them the conditions: the phase's own holds, and no other phase's."""
    reason, message = cut(reason, LONGEST_WORD), cut(message, LONGEST_MESSAGE)
    return status.but(
        phase=phase,
        reason=reason,
        message=message,
        conditions=in_phase(status.conditions, PhaseStatus(phase, reason, message), now, status.observed_generation),
        start_time=status.start_time or whole(now),
        completion_time=whole(now) if phase in ENDED else status.completion_time,
    )


def say_instead(status: Status, reason: str, message: str) -> Status:
    """Set the reason and the message of the phase to those of a condition that says why the job stands there."""
    return status.but(reason=cut(reason, LONGEST_WORD), message=cut(message, LONGEST_MESSAGE))


def set_condition(
    status: Status, type_: str, holds: bool | None, reason: str, message: str, now: datetime, *, always: bool = False
) -> Status:
    """Set one condition that is no phase's. `always`: also one that never held."""
    generation = status.observed_generation
    conditions = with_condition(status.conditions, type_, holds, reason, message, now, generation, always)
    return status if conditions is status.conditions else status.but(conditions=conditions)


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
    return status.remembering(attempts=attempts, all_created=False)


def count_restart(
    status: Status, cause: str, instead_of: str | None = None, restarts_moved: int = 1, *, number: int = 1
) -> Status:
    """Count a restart, or that `number` of them, under its cause; `instead_of` is the cause under which the same
    incident was counted before, and `restarts_moved` how many it was counted as."""
    restarts, causes = status.restarts, dict(status.restarts.causes)
    if instead_of is not None:
        causes[instead_of] = causes.get(instead_of, 0) - restarts_moved
    causes[str(cause)] = causes.get(cause, 0) + (restarts_moved if instead_of else number)
    total = restarts.total if instead_of else restarts.total + number
    causes = {name: count for name, count in causes.items() if count > 0}
    return status.but(restarts=restarts.but(total=total, causes=causes))


def ran_before(status: Status) -> bool:
    """Whether all tasks that train have run together since the job began, or went on after a suspension."""
    if status.active is not None:
        return status.active.all_ran_time is not None
    return status.first_step_time is not None or holds(status.conditions, RUNNING)
